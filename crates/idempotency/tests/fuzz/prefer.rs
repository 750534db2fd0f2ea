//! `Prefer: wait=N`: a number up to 30, or nothing.

use idempotency::prefer::wait_seconds;
use proptest::prelude::*;

proptest! {
    #[test]
    fn a_wait_is_a_number_up_to_thirty(seconds in any::<u64>(), before in "[a-z]{1,5}", upper in any::<bool>()) {
        let name = if upper { "WAIT" } else { "wait" };
        let line = format!("{before}; q=1 ,{name} = {seconds} ; x");
        let expected = if before == "wait" { None } else { Some(seconds.min(30)) };
        if let Some(expected) = expected {
            prop_assert_eq!(wait_seconds([line.as_str()]), Some(expected));
        }
    }

    #[test]
    fn whatever_is_preferred_nobody_waits_longer(line in "(wait|Wait|return|, ?|; ?|=|\"|-|\\+|[0-9]{1,25}|\\PC){0,12}") {
        if let Some(seconds) = wait_seconds([line.as_str()]) {
            prop_assert!(seconds <= 30, "{}", line);
            prop_assert!(line.to_lowercase().contains("wait"), "{}", line);
        }
    }
}
