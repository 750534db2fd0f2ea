//! A mail on its way out: composed anew on every attempt, and the same every time.
//!
//! Headers are built from parsed parts, never pasted together: a line break in an address makes it
//! no address, and one in a subject is encoded.

use std::time::{Duration, SystemTime};

use lettre::message::{Mailbox, header::ContentType};
use lettre::{AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor};

use super::sql::Due;
use crate::config::Mail;

/// Each step of the talk with the mail server.
const STEP: Duration = Duration::from_secs(10);
/// The whole talk; below the lease that a mail is taken under.
const TALK: Duration = Duration::from_secs(30);

/// The way out for mails.
pub struct Mailer {
    /// None: mails are read on the page /mailbox.
    transport: Option<AsyncSmtpTransport<Tokio1Executor>>,
    from: Mailbox,
}

/// Why a mail did not go out.
#[derive(Debug)]
pub struct Failure {
    /// For people who look after it.
    pub reason: String,
    /// Trying again cannot help.
    pub permanent: bool,
}

impl Mailer {
    /// Connects to nothing yet.
    ///
    /// # Errors
    /// When the URL cannot be read.
    pub fn new(mail: &Mail) -> anyhow::Result<Self> {
        let transport = match &mail.smtp_url {
            Some(url) => {
                let builder = AsyncSmtpTransport::<Tokio1Executor>::from_url(url.expose())?;
                Some(builder.timeout(Some(STEP)).build())
            }
            None => None,
        };
        Ok(Self { transport, from: mail.from.clone() })
    }

    /// Hands a mail to the mail server; without one, the mailbox has it already.
    ///
    /// # Errors
    /// Why the server did not take it, or gave no answer.
    pub async fn send(&self, mail: &Due) -> Result<(), Failure> {
        let Some(transport) = &self.transport else { return Ok(()) };
        let message = self.compose(mail).map_err(|error| Failure::for_good(&error))?;
        match tokio::time::timeout(TALK, transport.send(message)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) if error.is_permanent() => Err(Failure::for_good(&error)),
            Ok(Err(error)) => Err(Failure::passing(&error)),
            Err(elapsed) => Err(Failure::passing(&elapsed)),
        }
    }

    /// The date is that of the mail, not of the attempt, so that a repeat is the same mail.
    fn compose(&self, mail: &Due) -> anyhow::Result<Message> {
        let message = Message::builder()
            .message_id(Some(mail.message_id.clone()))
            .date(SystemTime::from(mail.created_at))
            .from(self.from.clone())
            .to(Mailbox::new(None, mail.recipient.parse()?))
            .subject(mail.subject.clone())
            .header(ContentType::TEXT_PLAIN)
            .body(mail.body.clone())?;
        Ok(message)
    }
}

impl Failure {
    fn passing(error: &dyn std::fmt::Display) -> Self {
        Self { reason: error.to_string(), permanent: false }
    }

    fn for_good(error: &dyn std::fmt::Display) -> Self {
        Self { reason: error.to_string(), permanent: true }
    }
}

#[cfg(test)]
mod tests {
    use domain::ReceiptId;
    use time::OffsetDateTime;
    use uuid::Uuid;

    use super::*;

    fn mail(recipient: &str, subject: &str) -> Due {
        Due {
            id: ReceiptId::from_uuid(Uuid::nil()),
            attempts: 1,
            message_id: "<rcp_1@payonce.test>".to_owned(),
            recipient: recipient.to_owned(),
            subject: subject.to_owned(),
            body: "Thank you.\n".to_owned(),
            created_at: OffsetDateTime::UNIX_EPOCH,
        }
    }

    fn mailer() -> Mailer {
        let from = "Shop <shop@payonce.test>".parse().unwrap();
        Mailer::new(&Mail { smtp_url: None, from }).unwrap()
    }

    #[test]
    fn a_repeat_is_the_same_mail_to_the_byte() {
        let mail = mail("ada@example.com", "Your receipt for ¥500");
        let compose = || mailer().compose(&mail).unwrap().formatted();
        assert_eq!(compose(), compose());
        let text = String::from_utf8(compose()).unwrap();
        assert!(text.contains("Message-ID: <rcp_1@payonce.test>\r\n"), "{text}");
    }

    #[test]
    fn no_value_can_add_a_header() {
        let injected = "Your receipt\r\nBcc: eve@example.com";
        let text = mailer().compose(&mail("ada@example.com", injected)).unwrap().formatted();
        let text = String::from_utf8(text).unwrap();
        let head = text.split("\r\n\r\n").next().unwrap();
        assert!(!head.lines().any(|line| line.starts_with("Bcc")), "{head}");
        for recipient in ["ada@example.com\r\nBcc: eve@example.com", "ada@example.com, b@c.d", ""] {
            assert!(mailer().compose(&mail(recipient, "x")).is_err(), "{recipient:?}");
        }
    }
}
