//! The two protocol eras: legacy (initialize handshake) and modern (per-request `_meta`).
