-- Nothing stands for a history any more: all of it is read again.

drop index runs_lost_subagents;
drop index runs_paid;

alter table runs
    drop column tools,
    drop column first_text_at,
    drop column submitted_at,
    drop column payer;

alter table sessions
    drop column pinned,
    drop column summaries,
    drop column summarized_upto,
    drop column summary;
