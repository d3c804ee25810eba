drop table topics;
