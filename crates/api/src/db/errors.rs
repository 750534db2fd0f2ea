//! What an error of the database means for whoever met it.

/// An error that may hold one of the database.
pub trait AsDatabaseError {
    /// The database's error, if it is one.
    fn sqlx(&self) -> Option<&sqlx::Error>;
}

impl AsDatabaseError for sqlx::Error {
    fn sqlx(&self) -> Option<&sqlx::Error> {
        Some(self)
    }
}

/// The five characters by which Postgres names an error.
pub fn sqlstate(error: &sqlx::Error) -> Option<String> {
    error.as_database_error()?.code().map(std::borrow::Cow::into_owned)
}

/// Undone for another transaction's sake: run it again.
pub fn is_conflict(error: &sqlx::Error) -> bool {
    matches!(sqlstate(error).as_deref(), Some("40001" | "40P01"))
}

/// Out of time, locks or connections: passing, and nothing was done.
pub fn is_busy(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::PoolTimedOut)
        || matches!(
            sqlstate(error).as_deref(),
            Some("55P03" | "57014" | "53300" | "53200" | "40001" | "40P01")
        )
}

/// The connection broke, or the server went away or takes no writes any more (25006); whether the last statement took effect is not known.
pub fn is_disconnect(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) | sqlx::Error::Tls(_) | sqlx::Error::Protocol(_) => true,
        _ => matches!(
            sqlstate(error).as_deref(),
            Some("57P01" | "57P02" | "57P03" | "08006" | "08003" | "08000" | "25P03" | "25006")
        ),
    }
}

/// The named constraint that a statement violated.
pub fn violated(error: &sqlx::Error) -> Option<&str> {
    error.as_database_error()?.constraint()
}
