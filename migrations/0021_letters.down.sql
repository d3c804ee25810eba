create index inbox_letters_by_id on inbox (id)
    where state = 'done' and kind = 'message' and not dismissed
        and outcome in ('failed', 'timed_out', 'dropped', 'rejected', 'abandoned', 'lost');
drop index inbox_letters;
alter index inbox_letters_by_id rename to inbox_letters;
