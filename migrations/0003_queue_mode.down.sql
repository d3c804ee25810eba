-- Every chat queues as the settings say.

alter table sessions drop column queue_mode;
