-- Messages that ended without an answer are few, and somebody asks for those of one session.

create index inbox_unanswered on inbox (session, id)
    where state = 'done' and kind = 'message' and outcome <> 'completed';
