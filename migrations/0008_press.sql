-- What repeats of a key were told, for people who look. Nothing depends on it: it is written after
-- the answers, in batches, and a row that is not there changes nothing.
create table press (
    id bigint generated always as identity primary key,
    scope bytea not null,
    key text collate "C" not null,
    -- `joined`, `replayed`, or the code of the problem.
    told text not null,
    -- Repeats that were told this within one batch, and when the first and the last of them was.
    times integer not null,
    first_at timestamptz not null,
    last_at timestamptz not null,
    constraint press_times check (times > 0)
);
create index press_key on press (scope, key);
create index press_last_at on press (last_at);
