//! The one table of everything that can go wrong: documents, pages, metrics and the API description
//! are made from it.

macro_rules! codes {
    ($($code:ident = $text:literal, $status:literal, retryable: $retryable:literal, safe_new_key: $safe:literal, $title:literal, means: $means:literal, advice: $advice:literal;)*) => {
        /// A stable name for what went wrong.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Code { $(#[doc = $title] $code,)* }

        impl Code {
            /// All codes, in the order of the documentation.
            pub const ALL: &[Self] = &[$(Self::$code,)*];

            /// As it stands in documents.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$code => $text,)* }
            }

            /// HTTP status.
            pub const fn status(self) -> u16 {
                match self { $(Self::$code => $status,)* }
            }

            /// May the same request be sent again?
            pub const fn retryable(self) -> bool {
                match self { $(Self::$code => $retryable,)* }
            }

            /// Can a new key not cause a second effect?
            pub const fn safe_new_key(self) -> bool {
                match self { $(Self::$code => $safe,)* }
            }

            /// The same for every problem of this code.
            pub const fn title(self) -> &'static str {
                match self { $(Self::$code => $title,)* }
            }

            /// What has happened, for the page that a problem's `type` leads to.
            pub const fn means(self) -> &'static str {
                match self { $(Self::$code => $means,)* }
            }

            /// What to do about it.
            pub const fn advice(self) -> &'static str {
                match self { $(Self::$code => $advice,)* }
            }

            /// The code with this name.
            pub fn named(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|code| code.as_str() == name)
            }

            /// Where it is described: the `type` of a problem document.
            pub fn page(self) -> String {
                format!("/problems/{}", self.as_str())
            }
        }
    };
}

codes! {
    IdempotencyKeyMissing = "idempotency_key_missing", 400, retryable: false, safe_new_key: true,
        "The request has no idempotency key.",
        means: "Every request that changes something carries a key, so that repeating it is safe. This one carried none, and nothing was done.",
        advice: "Make a key, for example a fresh UUID, send it as Idempotency-Key, and send the same one with every repeat.";
    IdempotencyKeyInvalid = "idempotency_key_invalid", 400, retryable: false, safe_new_key: true,
        "The idempotency key is malformed.",
        means: "A key is 1 to 255 visible ASCII characters without comma, semicolon, quotation mark and backslash, in one header line. Nothing was done.",
        advice: "Mend the key. An Idempotency-Key in two lines is refused even if both say the same: look for a proxy or a library that adds its own.";
    MalformedJson = "malformed_json", 400, retryable: false, safe_new_key: true,
        "The body is not unambiguous JSON.",
        means: "The body is not JSON, names a member twice, or holds a number or character that two readers may take for two things.",
        advice: "Send the body as one JSON object. The key was not used up.";
    Unauthenticated = "unauthenticated", 401, retryable: false, safe_new_key: true,
        "Who is asking is not known.",
        means: "There was no token, or one that has ended, or e-mail and password do not fit.",
        advice: "Sign in at POST /v1/sessions and send the token as Authorization: Bearer. The key was not used up.";
    Forbidden = "forbidden", 403, retryable: false, safe_new_key: true,
        "This account may not do that.",
        means: "The account is known, but this needs another role; or a form came without the token of its session.",
        advice: "Ask with an account that has the role. The key was not used up.";
    NotFound = "not_found", 404, retryable: false, safe_new_key: true,
        "There is no such thing.",
        means: "There is nothing at this address, or it belongs to somebody else: both get the same words.",
        advice: "Look at the id. Ids are used as they were given, never changed.";
    MethodNotAllowed = "method_not_allowed", 405, retryable: false, safe_new_key: true,
        "This path does not know the method.",
        means: "The address exists, but not for this method. The Allow header names those it knows.",
        advice: "Use one of the methods in Allow.";
    RequestIncomplete = "request_incomplete", 408, retryable: true, safe_new_key: true,
        "The request did not arrive as a whole.",
        means: "The body came too slowly, or broke off before its end. Nothing was done, and the connection is closed.",
        advice: "Send the same request with the same key again, as a whole.";
    RequestInProgress = "request_in_progress", 409, retryable: true, safe_new_key: false,
        "The first request with this key is still running.",
        means: "The first request with this key has not ended. It goes on, whether anybody waits for it or not.",
        advice: "Send the same request with the same key again after Retry-After. A new key would be a new purchase.";
    OutcomeUnknown = "outcome_unknown", 409, retryable: true, safe_new_key: false,
        "What became of the first request is not known yet.",
        means: "Somebody else's answer was lost on the way, so nobody knows yet whether money moved. It is being found out.",
        advice: "Send the same request with the same key again after Retry-After, or look at the resource. Never with a new key: the first may still succeed.";
    PaymentInProgress = "payment_in_progress", 409, retryable: true, safe_new_key: false,
        "A payment of this order is under way.",
        means: "Another payment of this order is under way, so this one was not begun and the order can be neither cancelled nor paid.",
        advice: "Wait for it to end and send the same request again. The payment_id says which one it is.";
    RefundInProgress = "refund_in_progress", 409, retryable: true, safe_new_key: false,
        "A refund of this payment is under way.",
        means: "Another refund of this payment is under way, and what may still go back depends on it.",
        advice: "Wait for it to end and send the same request again.";
    IdempotencyKeyExpired = "idempotency_key_expired", 409, retryable: false, safe_new_key: false,
        "The key was used; its reply is no longer kept.",
        means: "The key made something, and its lifetime is over, so the answer is no longer kept. It is not made again.",
        advice: "Look at the resource that the answer names: that is what the key made.";
    IdempotencyKeyReused = "idempotency_key_reused", 422, retryable: false, safe_new_key: true,
        "The key belongs to another request.",
        means: "The key was sent before with another request. The members named in pointers, or the parts named in differs, are not the same.",
        advice: "Take a new key for a new request. To repeat the first request, send exactly what was sent then.";
    OrderAlreadyPaid = "order_already_paid", 409, retryable: false, safe_new_key: true,
        "The order is already paid.",
        means: "The order was paid before, and an order is paid once.",
        advice: "Nothing is left to do. The resource shows the payment.";
    OrderExpired = "order_expired", 409, retryable: false, safe_new_key: true,
        "The order's reservation has run out.",
        means: "Nobody paid in time, so the goods are back in stock.",
        advice: "Place a new order, under a new key.";
    OutOfStock = "out_of_stock", 409, retryable: false, safe_new_key: true,
        "There is not enough in stock.",
        means: "Less is in stock than was asked for. Nothing was ordered and nothing was taken.",
        advice: "Order what is available, under a new key.";
    PriceChanged = "price_changed", 409, retryable: false, safe_new_key: true,
        "The total is not the expected one.",
        means: "The order comes to something else than expected_total says. Nothing was ordered.",
        advice: "Show the new total to whoever pays, and order again with it under a new key.";
    InvalidTransition = "invalid_transition", 409, retryable: false, safe_new_key: true,
        "The current state does not allow this.",
        means: "What was asked for is not possible from the state that the thing is in; the member state says which. Nothing was changed.",
        advice: "Look at the resource and decide anew.";
    EmailTaken = "email_taken", 409, retryable: false, safe_new_key: true,
        "An account with this e-mail exists.",
        means: "An account with this e-mail exists already. None was created.",
        advice: "Sign in instead, or take another e-mail with a new key.";
    CardDeclined = "card_declined", 402, retryable: false, safe_new_key: true,
        "The card was declined; nothing was charged.",
        means: "The bank said no. Nothing was charged, and the order is still reserved.",
        advice: "Pay the same order with another card, under a new key.";
    InsufficientFunds = "insufficient_funds", 402, retryable: false, safe_new_key: true,
        "The card does not hold the amount; nothing was charged.",
        means: "There is not enough money on the card. Nothing was charged, and the order is still reserved.",
        advice: "Pay the same order with another card, under a new key.";
    RefundTooLarge = "refund_too_large", 422, retryable: false, safe_new_key: true,
        "More than was paid cannot be refunded.",
        means: "Refunds of a payment, those under way included, never come to more than was paid. The member remaining says what is left.",
        advice: "Refund what remains, or leave the amount out, under a new key.";
    ValidationFailed = "validation_failed", 422, retryable: false, safe_new_key: true,
        "The request breaks a rule.",
        means: "A member is missing, unknown, of the wrong type or outside its limits. The member errors names each by its JSON pointer.",
        advice: "Mend what errors names. The key was not used up.";
    BodyTooLarge = "body_too_large", 413, retryable: false, safe_new_key: true,
        "The body is too large.",
        means: "A body has at most 65536 bytes, whatever its Content-Length says.",
        advice: "Send less. The key was not used up.";
    UnsupportedMediaType = "unsupported_media_type", 415, retryable: false, safe_new_key: true,
        "The body must be application/json.",
        means: "Bodies are application/json, without Content-Encoding.",
        advice: "Send it as application/json. The key was not used up.";
    RateLimited = "rate_limited", 429, retryable: true, safe_new_key: true,
        "Too many requests.",
        means: "This account asked for more than its share. Nothing was done.",
        advice: "Wait as long as Retry-After says. The same key may be used.";
    ProviderUnavailable = "provider_unavailable", 503, retryable: true, safe_new_key: true,
        "The payment provider took nothing; nothing was charged.",
        means: "The provider certainly took nothing: it could not be reached or refused before it began.",
        advice: "Send the same request with the same key again after Retry-After.";
    Busy = "busy", 503, retryable: true, safe_new_key: true,
        "The server is busy; nothing was done.",
        means: "A connection or a lock could not be had in time. This request did nothing. Where not even the key could be read, or an earlier copy may still be in a queue, the document says that a new key is not safe.",
        advice: "Send the same request with the same key again after Retry-After.";
    Internal = "internal", 500, retryable: true, safe_new_key: false,
        "The server failed.",
        means: "Something of ours failed, and how far the request came is not said here.",
        advice: "Send the same request with the same key again: it goes on where the first one stopped. Never with a new key.";
}
