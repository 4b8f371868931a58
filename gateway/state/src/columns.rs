//! Turns rows into structs and words into enums, for both engines. This is written out, since sqlx's derives link SQLite a
//! second time, into the compiler's own process: 30 seconds of every first build.

use sqlx::{
    Postgres, Sqlite,
    error::BoxDynError,
    postgres::{PgTypeInfo, PgValueRef},
    sqlite::{SqliteTypeInfo, SqliteValueRef},
};

use crate::{
    BuildKind, CallReplyStatus, ChangeClass, ConnectKind, ContractOrigin, DraftStatus, PlanStatus,
    Role, SecretPurpose, SessionKind, engine::SqlValue,
};

/// Reads each named column into the field with the same name, and with `..head` the rest of the row into the struct in
/// that field.
macro_rules! from_row {
    ($name:ident { $(..$head:ident,)? $($column:ident),+ $(,)? }) => {
        from_row!(sqlx::sqlite::SqliteRow, $name { $(..$head,)? $($column),+ });
        from_row!(sqlx::postgres::PgRow, $name { $(..$head,)? $($column),+ });
    };
    ($row:ty, $name:ident { $(..$head:ident,)? $($column:ident),+ }) => {
        impl<'r> sqlx::FromRow<'r, $row> for $name {
            fn from_row(row: &'r $row) -> Result<Self, sqlx::Error> {
                use sqlx::Row as _;
                Ok(Self { $($head: sqlx::FromRow::from_row(row)?,)? $($column: row.try_get(stringify!($column))?),+ })
            }
        }
    };
}

/// Keeps an enum as its word. A word that is not in the table is refused, never guessed.
macro_rules! word_column {
    ($name:ident) => {
        word_column!($name, Sqlite, SqliteTypeInfo, SqliteValueRef<'r>);
        word_column!($name, Postgres, PgTypeInfo, PgValueRef<'r>);

        impl From<$name> for SqlValue<'_> {
            fn from(word: $name) -> Self {
                Self::Text(Some(word.as_str()))
            }
        }
    };
    ($name:ident, $engine:ident, $info:ident, $value:ty) => {
        impl sqlx::Type<$engine> for $name {
            fn type_info() -> $info {
                <str as sqlx::Type<$engine>>::type_info()
            }

            fn compatible(info: &$info) -> bool {
                <str as sqlx::Type<$engine>>::compatible(info)
            }
        }

        impl<'r> sqlx::Decode<'r, $engine> for $name {
            fn decode(value: $value) -> Result<Self, BoxDynError> {
                let word = <&str as sqlx::Decode<'r, $engine>>::decode(value)?;
                Self::from_word(word).ok_or_else(|| {
                    format!("`{word}` is not a word of {}", stringify!($name)).into()
                })
            }
        }
    };
}

word_column!(BuildKind);
word_column!(CallReplyStatus);
word_column!(ChangeClass);
word_column!(ConnectKind);
word_column!(DraftStatus);
word_column!(ContractOrigin);
word_column!(PlanStatus);
word_column!(Role);
word_column!(SecretPurpose);
word_column!(SessionKind);

impl From<Option<DraftStatus>> for SqlValue<'_> {
    fn from(status: Option<DraftStatus>) -> Self {
        Self::Text(status.map(DraftStatus::as_str))
    }
}

pub(crate) use from_row;
