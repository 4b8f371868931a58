//! The protocol revisions that are spoken.

/// The protocol versions, in the order of their dates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProtocolVersion {
    V2024_11_05,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
    V2026_07_28,
}

impl ProtocolVersion {
    pub const ALL: [Self; 5] = [
        Self::V2024_11_05,
        Self::V2025_03_26,
        Self::V2025_06_18,
        Self::V2025_11_25,
        Self::V2026_07_28,
    ];
    pub const LEGACY: [Self; 4] = [
        Self::V2024_11_05,
        Self::V2025_03_26,
        Self::V2025_06_18,
        Self::V2025_11_25,
    ];
    /// The answer to `initialize` if the client asks for a version that is not spoken.
    pub const LEGACY_LATEST: Self = Self::V2025_11_25;
    /// The version of a legacy HTTP request without a session and without the version header (the specification).
    pub const LEGACY_ASSUMED: Self = Self::V2025_03_26;
    pub const MODERN: [Self; 1] = [Self::V2026_07_28];

    /// Returns the legacy revision with this date; `None` for any other.
    pub fn legacy(text: &str) -> Option<Self> {
        Self::LEGACY
            .into_iter()
            .find(|version| version.as_str() == text)
    }

    /// Returns the modern revision with this date; `None` for any other.
    pub fn modern(text: &str) -> Option<Self> {
        Self::MODERN
            .into_iter()
            .find(|version| version.as_str() == text)
    }

    /// Returns the date that names the revision on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// Returns `true` if the revision has no handshake, and every request carries what a handshake would agree on.
    pub fn is_modern(self) -> bool {
        self >= Self::V2026_07_28
    }

    /// Returns `true` if results carry `structuredContent`, tools `outputSchema`, and servers a title.
    pub fn is_structured(self) -> bool {
        self >= Self::V2025_06_18
    }

    /// Returns `true` for the only revision that had batches.
    pub fn has_batches(self) -> bool {
        self == Self::V2025_03_26
    }

    /// Returns `true` if a text names a revision of the modern era, spoken here or not.
    pub fn names_modern(text: &str) -> bool {
        let bytes = text.as_bytes();
        let date = bytes.len() == 10
            && bytes.iter().enumerate().all(|(at, byte)| match at {
                4 | 7 => *byte == b'-',
                _ => byte.is_ascii_digit(),
            });
        date && text >= "2026-07-28"
    }
}
