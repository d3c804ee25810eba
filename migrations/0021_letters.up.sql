-- Each look at a gateway counts the letters that nobody has answered, among those that were dropped
-- or rejected: from the index alone.
create index inbox_letters_with_outcome on inbox (id) include (outcome)
    where state = 'done' and kind = 'message' and not dismissed
        and outcome in ('failed', 'timed_out', 'dropped', 'rejected', 'abandoned', 'lost');
drop index inbox_letters;
alter index inbox_letters_with_outcome rename to inbox_letters;
