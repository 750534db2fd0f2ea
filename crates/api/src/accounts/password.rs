//! Passwords: argon2id, hashed off the request threads, no difference between wrong and unknown.

use argon2::Argon2;
use argon2::password_hash::{
    self, PasswordHash, PasswordHasher as _, PasswordVerifier as _, SaltString,
};
use tokio::sync::Semaphore;

use crate::problem::Problem;

/// A hash takes 19 MiB and tens of milliseconds: more at once would starve the payments.
static AT_ONCE: Semaphore = Semaphore::const_new(2);

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
        Ok(Argon2::default().hash_password(password.as_bytes(), &salt)?.to_string())
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
        fits(&password, &hash).is_ok() && known
    })
    .await
}

fn fits(password: &str, hash: &str) -> password_hash::Result<()> {
    Argon2::default().verify_password(password.as_bytes(), &PasswordHash::new(hash)?)
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
}
