-- A chat may choose its own queue mode; null is that of the settings.

alter table sessions
    add column queue_mode text,
    add constraint sessions_queue_mode
        check (queue_mode in ('queue', 'followup', 'interrupt', 'collect', 'steer'));
