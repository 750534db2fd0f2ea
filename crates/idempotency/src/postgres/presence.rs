//! Who is at a key whose record cannot be seen yet.
//!
//! Until it commits, an execution is visible to nobody. A duplicate that could not wait any longer
//! for what the execution has locked would find no record, and say that nothing was done. So each
//! transaction that claims a key takes a shared advisory lock on it first, which waits for nobody
//! and ends with the transaction; whoever is about to say that nothing was done asks for it.

use sha2::{Digest as _, Sha256};
use sqlx::postgres::PgConnection;

use crate::key::Identity;

/// The advisory lock of a key. Two keys may, once in 2^64, have the same: one of them is then told
/// that it is still running.
pub fn number(identity: &Identity) -> i64 {
    let scope = identity.scope.as_bytes();
    let mut digest = Sha256::new();
    digest.update([u8::try_from(scope.len()).unwrap_or(u8::MAX)]);
    digest.update(scope);
    digest.update(identity.key.as_str());
    let digest: [u8; 32] = digest.finalize().into();
    let (first, _) = digest.split_first_chunk().expect("32 bytes");
    i64::from_be_bytes(*first)
}

/// What opens a transaction that claims this key: one message, so one round trip.
pub fn begin(identity: &Identity) -> String {
    format!("begin; select pg_advisory_xact_lock_shared({})", number(identity))
}

/// Whether a transaction that claims this key is open. One that has ended since shows in its record:
/// ask here first, then there. What stands in the way of the lock may be somebody else who asks: only
/// then all locks are looked through for one that a claim holds.
///
/// # Errors
/// Those of the database.
pub async fn is_at_work(connection: &mut PgConnection, identity: &Identity) -> sqlx::Result<bool> {
    sqlx::query_scalar(
        "select case when pg_try_advisory_xact_lock($1) then false else exists (
             select from pg_locks
             where locktype = 'advisory' and mode = 'ShareLock' and granted and objsubid = 1
               and database = (select oid from pg_database where datname = current_database())
               and (classid::bigint << 32 | objid::bigint) = $1
         ) end",
    )
    .bind(number(identity))
    .fetch_one(connection)
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{Key, Scope};

    fn number_of(scope: &[u8], key: &str) -> i64 {
        let key = Key::parse([key.as_bytes()]).unwrap();
        number(&Identity { scope: Scope::from_stored(scope), key })
    }

    #[test]
    fn every_key_of_every_scope_has_a_number_of_its_own() {
        let all = [(&b"a"[..], "b"), (b"a", "c"), (b"b", "b"), (b"ab", "b"), (b"a", "bb")];
        let mut numbers = all.map(|(scope, key)| number_of(scope, key));
        assert_eq!(numbers, all.map(|(scope, key)| number_of(scope, key)));
        numbers.sort_unstable();
        assert!(numbers.windows(2).all(|pair| pair[0] != pair[1]), "{numbers:?}");
    }
}
