//! Defines the kinds of values, as far as the constraints of `#[arg(…)]` depend on them at compile time.

/// The kind of a type's values. The macros check each constraint and each literal default against it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A text whose length may be bounded.
    Text,
    /// A text in a special form: a character, a date, base64.
    FixedText,
    /// One of several texts.
    Choice,
    /// A whole number within the type's bounds.
    Integer {
        /// The smallest value of the type.
        min: i128,
        /// The largest value of the type.
        max: i128,
    },
    /// A number with a fraction.
    Number,
    /// True or false.
    Boolean,
    /// A list or a set, of any length.
    List,
    /// A list of one length: an array or a tuple.
    FixedList,
    /// An object with names of the caller's choice.
    Map,
    /// An object with names of the type's own.
    Object,
    /// Anything else, which no constraint of `#[arg(…)]` can bound.
    Any,
    /// A type without a schema, which is a separate error: everything passes, so that it remains the only one.
    Unknown,
}

impl Kind {
    /// Returns the kind of an enum by whether the values of each variant are objects.
    pub const fn of_enum(are_objects: &[bool]) -> Self {
        let mut at = 0;
        while at < are_objects.len() {
            if !are_objects[at] {
                return Self::Any;
            }
            at += 1;
        }
        Self::Object
    }

    /// Returns `true` if `min_len` and `max_len` have a meaning.
    pub const fn has_length(self) -> bool {
        matches!(self, Self::Text | Self::List | Self::Map | Self::Unknown)
    }

    /// Returns `true` if `gt`, `lt`, `ge` and `le` have a meaning.
    pub const fn has_order(self) -> bool {
        matches!(self, Self::Integer { .. } | Self::Number | Self::Unknown)
    }

    /// Returns `true` if `pattern` and `format` have a meaning.
    pub const fn is_text(self) -> bool {
        matches!(self, Self::Text | Self::Unknown)
    }

    /// Returns `true` if a bound may have a fraction.
    pub const fn takes_fraction(self) -> bool {
        !matches!(self, Self::Integer { .. })
    }

    /// Returns `true` unless the type's own bounds exclude the whole number.
    pub const fn holds(self, number: i128) -> bool {
        match self {
            Self::Integer { min, max } => min <= number && number <= max,
            _ => true,
        }
    }

    /// Returns `true` if each value is an object.
    pub const fn is_object(self) -> bool {
        matches!(self, Self::Map | Self::Object | Self::Unknown)
    }

    /// Returns `true` if a text literal can be the default.
    pub const fn takes_text(self) -> bool {
        matches!(
            self,
            Self::Text | Self::FixedText | Self::Choice | Self::Any | Self::Unknown
        )
    }

    /// Returns `true` if a whole number can be the default.
    pub const fn takes_integer(self) -> bool {
        matches!(
            self,
            Self::Integer { .. } | Self::Number | Self::Any | Self::Unknown
        )
    }

    /// Returns `true` if a number with a fraction can be the default.
    pub const fn takes_number(self) -> bool {
        matches!(self, Self::Number | Self::Any | Self::Unknown)
    }

    /// Returns `true` if `true` and `false` can be the default.
    pub const fn takes_boolean(self) -> bool {
        matches!(self, Self::Boolean | Self::Any | Self::Unknown)
    }

    /// Returns `true` if a list literal can be the default.
    pub const fn takes_list(self) -> bool {
        matches!(
            self,
            Self::List | Self::FixedList | Self::Any | Self::Unknown
        )
    }
}
