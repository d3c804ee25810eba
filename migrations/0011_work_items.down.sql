-- There is no work any more.

drop table work_items;
