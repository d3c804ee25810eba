-- == Dashboard ==
-- Who has changed what.

create table audit (
    id      bigint      generated always as identity primary key,
    at      timestamptz not null,
    kind    text        not null,
    actor   text        not null,
    role    text        not null,
    via     text        not null,
    node    text        collate "C" not null,
    action  text        collate "C" not null,
    subject text        not null,
    before  jsonb,
    after   jsonb,
    result  text        not null
);
comment on table audit is 'What people, tokens, commands and the gateway itself have changed. Rows are only added; retention deletes the oldest ones.';
comment on column audit.kind is 'How the actor reached the gateway: settings_token, token, person, command_line or node.';
comment on column audit.actor is 'The name of the token, person, user of the operating system, or node.';
comment on column audit.role is 'The role of the actor; empty where the rules of chats apply.';
comment on column audit.via is 'An address, a chat or a command line.';
comment on column audit.node is 'The node that did it; empty: a command without a gateway.';
comment on column audit.action is 'What was done, such as job.edit.';
comment on column audit.subject is 'To what: such as a job, a session, a person or a setting.';
comment on column audit.before is 'What changed, before; null: nothing, or not known.';
comment on column audit.after is 'What changed, afterwards; null: nothing, or not known.';
comment on column audit.result is 'ok, or the words of the error.';
create index audit_by_time on audit (at);
comment on index audit_by_time is 'Rows that retention deletes.';

-- A mistake, a bug or a careless statement changes nothing. Who may change the schema still can.
create function refuse_change_of_audit() returns trigger language plpgsql as $$
begin
    if tg_op = 'DELETE' then
        if old.at < nullif(current_setting('goclaw.audit_kept_since', true), '')::timestamptz then
            return old;
        end if;
    elsif tg_op = 'TRUNCATE' and current_setting('goclaw.restores', true) = 'yes' then
        return null;
    end if;
    raise exception 'rows of the audit log can only be added, so % is refused', lower(tg_op)
        using errcode = 'restrict_violation';
end
$$;
create trigger audit_rows_are_kept before update or delete on audit
    for each row execute function refuse_change_of_audit();
create trigger audit_is_kept before truncate on audit
    for each statement execute function refuse_change_of_audit();
