-- == Dashboard ==
-- Browsers that are signed in, and the tokens of programs.

create table tokens (
    name         text        collate "C" primary key,
    role         text        not null check (role in ('viewer', 'operator', 'admin')),
    reads_text   boolean     not null,
    secret_hash  text        collate "C" not null,
    created_at   timestamptz not null,
    expires_at   timestamptz,
    last_used_at timestamptz
);
comment on table tokens is 'Tokens with a name and a role, besides that of the settings.';
comment on column tokens.reads_text is 'Whether a viewer may read the text of messages.';
comment on column tokens.secret_hash is 'Hash of the token, which is shown once.';
comment on column tokens.expires_at is 'Null: never.';
comment on column tokens.last_used_at is 'The last request, to about a minute; null before the first one.';
create unique index tokens_by_secret on tokens (secret_hash);
comment on index tokens_by_secret is 'The token of a request.';

alter table sign_ins
    add column name       text    not null default 'web.token',
    add column role       text    not null default 'admin' check (role in ('viewer', 'operator', 'admin')),
    add column reads_text boolean not null default true,
    add column method     text    not null default 'settings_token'
        check (method in ('settings_token', 'token', 'proxy', 'openid')),
    add column token      text    collate "C" references tokens (name) on delete cascade;
comment on column sign_ins.name is 'Who signed in: the name of a token or of a person.';
comment on column sign_ins.reads_text is 'Whether a viewer may read the text of messages.';
comment on column sign_ins.method is 'How the browser signed in.';
comment on column sign_ins.token is 'The token of method token: with it the sign-in ends.';
create index sign_ins_of_token on sign_ins (token) where token is not null;
comment on index sign_ins_of_token is 'The browsers that a revoked token signed in.';
