-- Sign-ins of other roles would become those of admins.
delete from sign_ins where method <> 'settings_token';
alter table sign_ins
    drop column name,
    drop column role,
    drop column reads_text,
    drop column method,
    drop column token;
drop table tokens;
