//! Turns rows into structs and words into enums. This is written out, since sqlx's derives link SQLite a second time,
//! into the compiler's own process: 30 seconds of every first build.

use sqlx::{
    Sqlite,
    encode::IsNull,
    error::BoxDynError,
    sqlite::{SqliteArgumentsBuffer, SqliteTypeInfo, SqliteValueRef},
};

use crate::{
    BuildKind, ChangeClass, ConnectKind, DraftStatus, Origin, Role, SecretPurpose, SessionKind,
};

/// Reads each named column into the field of the same name, and with `..head` the rest of the row into the struct in that
/// field.
macro_rules! from_row {
    ($row:ident { ..$head:ident, $($column:ident),+ $(,)? }) => {
        impl<'r> sqlx::FromRow<'r, sqlx::sqlite::SqliteRow> for $row {
            fn from_row(row: &'r sqlx::sqlite::SqliteRow) -> Result<Self, sqlx::Error> {
                use sqlx::Row as _;
                Ok(Self { $head: sqlx::FromRow::from_row(row)?, $($column: row.try_get(stringify!($column))?),+ })
            }
        }
    };
    ($row:ident { $($column:ident),+ $(,)? }) => {
        impl<'r> sqlx::FromRow<'r, sqlx::sqlite::SqliteRow> for $row {
            fn from_row(row: &'r sqlx::sqlite::SqliteRow) -> Result<Self, sqlx::Error> {
                use sqlx::Row as _;
                Ok(Self { $($column: row.try_get(stringify!($column))?),+ })
            }
        }
    };
}

/// Keeps an enum as its word. A word that is not in the table is refused, never guessed.
macro_rules! word_column {
    ($name:ident) => {
        impl sqlx::Type<Sqlite> for $name {
            fn type_info() -> SqliteTypeInfo {
                <str as sqlx::Type<Sqlite>>::type_info()
            }
        }

        impl sqlx::Encode<'_, Sqlite> for $name {
            fn encode_by_ref(
                &self,
                arguments: &mut SqliteArgumentsBuffer,
            ) -> Result<IsNull, BoxDynError> {
                <&str as sqlx::Encode<'_, Sqlite>>::encode(self.as_str(), arguments)
            }
        }

        impl<'r> sqlx::Decode<'r, Sqlite> for $name {
            fn decode(value: SqliteValueRef<'r>) -> Result<Self, BoxDynError> {
                let word = <&str as sqlx::Decode<'r, Sqlite>>::decode(value)?;
                Self::from_word(word).ok_or_else(|| {
                    format!("`{word}` is not a word of {}", stringify!($name)).into()
                })
            }
        }
    };
}

word_column!(BuildKind);
word_column!(ChangeClass);
word_column!(ConnectKind);
word_column!(DraftStatus);
word_column!(Origin);
word_column!(Role);
word_column!(SecretPurpose);
word_column!(SessionKind);

pub(crate) use from_row;
