-- == Dashboard ==
-- Browsers that are signed in.

create table sign_ins (
    id           text        collate "C" primary key,
    secret_hash  text        collate "C" not null,
    token_hash   text        collate "C" not null,
    created_at   timestamptz not null,
    last_used_at timestamptz not null,
    expires_at   timestamptz not null,
    address      text        not null,
    user_agent   text        not null
);
comment on table sign_ins is 'Browsers that are signed in to the dashboard.';
comment on column sign_ins.id is 'The name by which a person ends the sign-in.';
comment on column sign_ins.secret_hash is 'Hash of the secret in the cookie.';
comment on column sign_ins.token_hash is 'Part of a keyed hash of the token: with another token the sign-in is not valid.';
comment on column sign_ins.last_used_at is 'The last request, to about a minute.';
comment on column sign_ins.address is 'Where the browser connected from.';
comment on column sign_ins.user_agent is 'What the browser calls itself.';
create unique index sign_ins_by_secret on sign_ins (secret_hash);
comment on index sign_ins_by_secret is 'The browser with a cookie.';
