//! A finished reply as one run of bytes: what the caches keep.
//!
//! Layout: version (1), expiry in Unix nanoseconds (16), fingerprint (32), outcome (1), status (2),
//! then length-prefixed (u32): marks, resource, headers, body. One run is one allocation, however many
//! parts a reply has: thousands that come and go leave no holes that only small things fit into.

use bytes::Bytes;
use time::OffsetDateTime;

use crate::fingerprint::{Fingerprint, Marks};
use crate::record::{Finished, Outcome};
use crate::reply::Reply;

const VERSION: u8 = 1;
/// Everything but the four parts of any length.
const HEAD_BYTES: usize = 1 + 16 + 32 + 1 + 2 + 4 * 4;

/// The bytes to keep, behind so many that the caller fills in.
///
/// # Panics
/// On a part of 4 GiB, which no store holds.
pub(crate) fn pack(finished: &Finished, room: usize) -> Vec<u8> {
    let headers = finished.reply.encode_headers();
    let parts = [
        finished.marks.as_bytes(),
        finished.resource.as_deref().unwrap_or_default().as_bytes(),
        &headers,
        finished.reply.body(),
    ];
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let mut bytes = Vec::with_capacity(room + HEAD_BYTES + length);
    bytes.resize(room, 0);
    bytes.push(VERSION);
    bytes.extend(finished.expires_at.unix_timestamp_nanos().to_be_bytes());
    bytes.extend(finished.fingerprint.0);
    bytes.push(u8::from(finished.outcome == Outcome::Completed));
    bytes.extend(finished.reply.status().to_be_bytes());
    for part in parts {
        let length = u32::try_from(part.len()).expect("a stored part is under 4 GiB");
        bytes.extend(length.to_be_bytes());
        bytes.extend(part);
    }
    bytes
}

/// The reply in these bytes; its body and marks stay where they are. `None` for bytes that
/// [`pack`] did not make.
pub(crate) fn unpack(packed: &Bytes) -> Option<Finished> {
    let rest = packed.strip_prefix(&[VERSION])?;
    let (expiry, rest) = rest.split_first_chunk::<16>()?;
    let (fingerprint, rest) = rest.split_first_chunk::<32>()?;
    let ([completed, status @ ..], rest) = rest.split_first_chunk::<3>()?;
    let (marks, rest) = part(rest)?;
    let (resource, rest) = part(rest)?;
    let (headers, rest) = part(rest)?;
    let (body, rest) = part(rest)?;
    if !rest.is_empty() {
        return None;
    }
    let outcome = if *completed == 1 { Outcome::Completed } else { Outcome::Failed };
    let status = u16::from_be_bytes(*status);
    let resource = std::str::from_utf8(resource).ok()?;
    Some(Finished {
        fingerprint: Fingerprint(*fingerprint),
        marks: Marks::from_stored(packed.slice_ref(marks))?,
        outcome,
        reply: Reply::from_stored(status, headers, packed.slice_ref(body))?,
        expires_at: OffsetDateTime::from_unix_timestamp_nanos(i128::from_be_bytes(*expiry)).ok()?,
        resource: (!resource.is_empty()).then(|| resource.to_owned()),
    })
}

fn part(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    rest.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finished() -> Finished {
        Finished {
            fingerprint: Fingerprint([9; 32]),
            marks: Marks::default(),
            outcome: Outcome::Failed,
            reply: Reply::new(402, "application/problem+json", "{\"id\":1}"),
            expires_at: OffsetDateTime::UNIX_EPOCH + time::Duration::nanoseconds(1_700_000_001),
            resource: Some("/v1/orders/ord_1".into()),
        }
    }

    #[test]
    fn a_packed_reply_takes_its_room_and_no_more_and_is_unpacked_where_it_lies() {
        let mut packed = pack(&finished(), 3);
        assert_eq!(packed.len(), packed.capacity());
        assert_eq!(packed.drain(..3).collect::<Vec<_>>(), [0; 3]);
        let packed = Bytes::from(packed);
        let again = unpack(&packed).unwrap();
        assert_eq!(again, finished());
        assert!(packed.as_ptr_range().contains(&again.reply.body().as_ptr()));
    }

    #[test]
    fn bytes_that_are_cut_or_go_on_are_no_reply() {
        let packed = pack(&finished(), 0);
        for at in 0..packed.len() {
            assert_eq!(unpack(&Bytes::copy_from_slice(&packed[..at])), None, "cut at {at}");
        }
        assert_eq!(unpack(&[&packed[..], b"x"].concat().into()), None);
    }
}
