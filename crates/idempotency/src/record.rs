//! What is known about a key, and what a request with that key gets.

use time::OffsetDateTime;

use crate::fingerprint::{Claim, Differences, Fingerprint, Marks};
use crate::reply::Reply;

/// A finished reply with what is needed to give it to nobody else. It never changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// What was asked.
    pub fingerprint: Fingerprint,
    /// To name what differs when another request uses the key.
    pub marks: Marks,
    /// How it ended.
    pub outcome: Outcome,
    /// The first answer.
    pub reply: Reply,
    /// Until when it is replayed, on the clock of the store.
    pub expires_at: OffsetDateTime,
    /// What the operation made, as a path.
    pub resource: Option<String>,
}

/// How an operation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It had its effect.
    Completed,
    /// It was refused for good; the refusal is the reply.
    Failed,
}

impl Outcome {
    /// As stored and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }
}

/// How far a key has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Somebody began, or its outcome was lost. Never expires.
    Unfinished {
        /// The outcome was lost at least once.
        unknown: bool,
        /// Until when its holder may act.
        lease_until: OffsetDateTime,
        /// What the operation is about, for whoever takes over.
        subject: uuid::Uuid,
    },
    /// There is a reply.
    Finished {
        /// How it ended.
        outcome: Outcome,
        /// The reply.
        reply: Reply,
        /// From when the key counts as absent.
        expires_at: OffsetDateTime,
    },
}

/// One row of the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// What was asked first.
    pub fingerprint: Fingerprint,
    /// See [`Marks`].
    pub marks: Marks,
    /// How far it has come.
    pub state: State,
    /// Number of the holder; whoever takes over has the next.
    pub fence: i64,
    /// Executions, not replays.
    pub attempts: i32,
    /// When it was first claimed.
    pub created_at: OffsetDateTime,
    /// When it was finished.
    pub finished_at: Option<OffsetDateTime>,
    /// What the operation made, as a path.
    pub resource: Option<String>,
}

/// What a request with this key gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admission {
    /// The finished reply again.
    Replay(Finished),
    /// The key belongs to another request.
    Reused(Differences),
    /// Somebody is at it: wait, and look again.
    Running {
        /// What it is about, if its outcome was lost.
        unknown: Option<uuid::Uuid>,
    },
    /// Nobody is at it any more: take the fence after this one.
    Abandoned {
        /// The fence of the last holder.
        fence: i64,
        /// What it is about.
        subject: uuid::Uuid,
    },
    /// Its day is over; it counts as absent.
    Expired,
}

impl Record {
    /// Decides by fingerprint, state and the store's clock.
    pub fn admit(self, claim: &Claim, now: OffsetDateTime) -> Admission {
        if let State::Finished { expires_at, .. } = self.state
            && expires_at <= now
        {
            return Admission::Expired;
        }
        if self.fingerprint != claim.fingerprint {
            return Admission::Reused(self.marks.differences(&claim.marks));
        }
        let (fingerprint, marks, resource) = (self.fingerprint, self.marks, self.resource);
        match self.state {
            State::Finished { outcome, reply, expires_at } => Admission::Replay(Finished {
                fingerprint,
                marks,
                outcome,
                reply,
                expires_at,
                resource,
            }),
            State::Unfinished { unknown, lease_until, subject } if lease_until > now => {
                Admission::Running { unknown: unknown.then_some(subject) }
            }
            State::Unfinished { subject, .. } => {
                Admission::Abandoned { fence: self.fence, subject }
            }
        }
    }
}

impl Finished {
    /// What tells a request from the one that got this reply; `None`: it is the same request, and
    /// the reply is its own as long as it has not expired.
    pub fn differences(&self, claim: &Claim) -> Option<Differences> {
        (self.fingerprint != claim.fingerprint).then(|| self.marks.differences(&claim.marks))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fingerprint::{Body, Fingerprinter, Parts};
    use crate::key::{Identity, Key, Scope};
    use time::Duration;

    const NOW: OffsetDateTime = OffsetDateTime::UNIX_EPOCH;

    fn claim(path: &str) -> Claim {
        let identity =
            Identity { scope: Scope::account([1; 16]), key: Key::from_bare(b"k").unwrap() };
        let parts =
            Parts { method: "POST", path, query: "", content_type: None, body: Body::Empty };
        Fingerprinter::new(b"s").claim(identity, parts, &[])
    }

    fn record(state: State) -> Record {
        let Claim { fingerprint, marks, .. } = claim("/a");
        Record {
            fingerprint,
            marks,
            state,
            fence: 3,
            attempts: 2,
            created_at: NOW,
            finished_at: None,
            resource: None,
        }
    }

    fn unfinished(lease_ms: i64) -> State {
        State::Unfinished {
            unknown: false,
            lease_until: NOW + Duration::milliseconds(lease_ms),
            subject: uuid::Uuid::nil(),
        }
    }

    fn finished(life_ms: i64) -> State {
        State::Finished {
            outcome: Outcome::Failed,
            reply: Reply::new(402, "application/problem+json", "{}"),
            expires_at: NOW + Duration::milliseconds(life_ms),
        }
    }

    #[test]
    fn a_cached_reply_is_for_its_own_request() {
        let Claim { fingerprint, marks, .. } = claim("/a");
        let reply = Reply::new(201, "application/json", "{}");
        let outcome = Outcome::Completed;
        let kept = Finished { fingerprint, marks, outcome, reply, expires_at: NOW, resource: None };
        assert_eq!(kept.differences(&claim("/a")), None);
        assert_eq!(kept.differences(&claim("/b")).unwrap().differs, ["path"]);
        assert_eq!(
            (Outcome::Completed.as_str(), Outcome::Failed.as_str()),
            ("completed", "failed")
        );
    }

    #[test]
    fn the_same_request_gets_what_the_state_says() {
        let same = claim("/a");
        let admit = |state| record(state).admit(&same, NOW);
        assert_eq!(admit(unfinished(1)), Admission::Running { unknown: None });
        let nil = uuid::Uuid::nil();
        assert_eq!(admit(unfinished(0)), Admission::Abandoned { fence: 3, subject: nil });
        assert!(matches!(admit(finished(1)), Admission::Replay(finished)
            if finished.reply.status() == 402 && finished.outcome == Outcome::Failed));
        assert_eq!(admit(finished(0)), Admission::Expired);
    }

    #[test]
    fn another_request_is_refused_in_every_state_but_expired() {
        let other = claim("/b");
        for state in [unfinished(1), unfinished(0), finished(1)] {
            assert!(matches!(record(state).admit(&other, NOW), Admission::Reused(differences)
                if differences.differs == ["path"]));
        }
        assert_eq!(record(finished(0)).admit(&other, NOW), Admission::Expired);
    }
}
