drop table unmentioned;
