//! Passwords: argon2id, hashed off the request threads, no difference between wrong and unknown.
//!
//! The memory of a hash is kept for the next one. Allocated anew on whichever thread is free, it
//! stays with the allocator of each: anybody could make the process grow to a gigabyte by signing in.

use std::sync::{Mutex, PoisonError};

use argon2::password_hash::{self, Output, ParamsString, PasswordHash, Salt, SaltString};
use argon2::{ARGON2ID_IDENT, Algorithm, Argon2, Block, Params, Version};
use tokio::sync::Semaphore;

use crate::problem::Problem;

/// A hash takes 19 MiB and tens of milliseconds: more at once would starve the payments.
static AT_ONCE: Semaphore = Semaphore::const_new(2);
/// The memory of the hashes that are not running.
static ROOMS: Mutex<Vec<Vec<Block>>> = Mutex::new(Vec::new());

/// Stands in for the hash of an account that does not exist, so that guessing takes as long.
const NOBODY: &str =
    "$argon2id$v=19$m=19456,t=2,p=1$bm9ib2R5bm9ib2R5$PcrzaWoU46WfHVJxHQZ3q8ew6tHhxvVJ3KTIHhZ+o3A";

/// Hashes a password.
///
/// # Errors
/// `internal` when the hasher fails.
pub async fn hash(password: String) -> Result<String, Problem> {
    in_turn(move || {
        let salt = SaltString::encode_b64(&rand::random::<[u8; 16]>())?;
        let (salt, params) = (salt.as_salt(), Params::default());
        let hash = derived(&password, salt, &params)?;
        let hash = PasswordHash {
            algorithm: ARGON2ID_IDENT,
            version: Some(Version::V0x13.into()),
            params: ParamsString::try_from(&params)?,
            salt: Some(salt),
            hash: Some(hash),
        };
        Ok(hash.to_string())
    })
    .await?
    .map_err(|error: password_hash::Error| Problem::internal(&error))
}

/// Whether the password fits the hash; `None` takes as long and never fits.
///
/// # Errors
/// `internal` when the hasher fails.
pub async fn verify(password: String, hash: Option<String>) -> Result<bool, Problem> {
    in_turn(move || {
        let known = hash.is_some();
        let hash = hash.unwrap_or_else(|| NOBODY.to_owned());
        fits(&password, &hash).unwrap_or(false) && known
    })
    .await
}

fn fits(password: &str, hash: &str) -> password_hash::Result<bool> {
    let hash = PasswordHash::new(hash)?;
    let (Some(salt), Some(known)) = (hash.salt, hash.hash) else { return Ok(false) };
    // Outputs are compared in constant time.
    Ok(derived(password, salt, &Params::try_from(&hash)?)? == known)
}

fn derived(password: &str, salt: Salt<'_>, params: &Params) -> password_hash::Result<Output> {
    let mut salt_bytes = [0; Salt::MAX_LENGTH];
    let salt = salt.decode_b64(&mut salt_bytes)?;
    let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params.clone());
    let mut room = rooms().pop().unwrap_or_default();
    room.resize(params.block_count(), Block::default());
    let mut hash = [0; Params::DEFAULT_OUTPUT_LEN];
    let hashed = argon2.hash_password_into_with_memory(
        password.as_bytes(),
        salt,
        &mut hash,
        room.as_mut_slice(),
    );
    rooms().push(room);
    hashed?;
    Output::new(&hash)
}

fn rooms() -> std::sync::MutexGuard<'static, Vec<Vec<Block>>> {
    ROOMS.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn in_turn<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Problem> {
    let turn = AT_ONCE.acquire().await.map_err(|error| Problem::internal(&error))?;
    // The turn ends with the work, whether or not somebody still waits for it.
    let work = move || {
        let _turn = turn;
        work()
    };
    tokio::task::spawn_blocking(work).await.map_err(|error| Problem::internal(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_password_fits_its_own_hash_and_no_other() {
        let hashed = hash("correct horse".to_owned()).await.unwrap();
        assert!(hashed.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hashed}");
        assert!(verify("correct horse".to_owned(), Some(hashed.clone())).await.unwrap());
        assert!(!verify("battery staple".to_owned(), Some(hashed.clone())).await.unwrap());
        assert!(!verify("nobody".to_owned(), None).await.unwrap());
        assert_ne!(hashed, hash("correct horse".to_owned()).await.unwrap(), "each has its salt");
    }

    /// Made by the library's own interface, as every hash stored so far.
    #[tokio::test]
    async fn a_hash_of_the_librarys_own_making_is_understood() {
        use argon2::password_hash::{PasswordHasher, PasswordVerifier};
        let salt = SaltString::encode_b64(b"sixteen bytes of").unwrap();
        let theirs = Argon2::default().hash_password(b"correct horse", &salt).unwrap().to_string();
        assert!(verify("correct horse".to_owned(), Some(theirs)).await.unwrap());
        let ours = hash("correct horse".to_owned()).await.unwrap();
        let ours = PasswordHash::new(&ours).unwrap();
        assert!(Argon2::default().verify_password(b"correct horse", &ours).is_ok());
    }

    #[tokio::test]
    async fn fifty_at_once_take_the_memory_of_two() {
        let asked = (0..50).map(|n| tokio::spawn(verify(format!("wrong-{n}"), None)));
        for asked in asked.collect::<Vec<_>>() {
            assert!(!asked.await.unwrap().unwrap());
        }
        assert!(rooms().len() <= 2, "{}", rooms().len());
    }
}
