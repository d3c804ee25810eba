-- A request for access can be decided about by buttons in the chats of owners, who know it by its id.
-- What its sender wrote waits with it: JSON of a message, its session, agent and kind. A group's
-- request has no code.
alter table pairing_requests
    add column id text collate "C" not null default gen_random_uuid()::text,
    add column chat text collate "C" not null default '',
    add column peer text not null default 'direct',
    add column messages jsonb not null default '[]';

create unique index pairing_requests_by_id on pairing_requests (id);
