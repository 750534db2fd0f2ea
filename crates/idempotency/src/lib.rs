//! One key, at most one effect, one reply.
