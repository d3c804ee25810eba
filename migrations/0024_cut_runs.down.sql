alter table runs drop column follows;
alter table inbox drop column last_run;
