drop index pairing_requests_by_id;

-- Only this release knows of groups that ask.
delete from pairing_requests where peer <> 'direct';

alter table pairing_requests
    drop column id,
    drop column chat,
    drop column peer,
    drop column messages;
