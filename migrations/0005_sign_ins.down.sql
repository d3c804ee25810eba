-- All browsers have to sign in again; nothing else depends on it.
drop table sign_ins;
