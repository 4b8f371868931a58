//! Turns rows into structs and words into enums. This is written out, since sqlx's derives link SQLite a second time,
//! into the compiler's own process: 30 seconds of every first build.

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

/// An enum that is kept as a word. A word that is not in the table is refused, never guessed.
macro_rules! words {
    ($name:ident { $($variant:ident = $word:literal),+ $(,)? }) => {
        impl $name {
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.pad(self.as_str())
            }
        }

        impl sqlx::Type<sqlx::Sqlite> for $name {
            fn type_info() -> sqlx::sqlite::SqliteTypeInfo {
                <str as sqlx::Type<sqlx::Sqlite>>::type_info()
            }
        }

        impl sqlx::Encode<'_, sqlx::Sqlite> for $name {
            fn encode_by_ref(
                &self,
                arguments: &mut sqlx::sqlite::SqliteArgumentsBuffer,
            ) -> Result<sqlx::encode::IsNull, sqlx::error::BoxDynError> {
                <&str as sqlx::Encode<'_, sqlx::Sqlite>>::encode(self.as_str(), arguments)
            }
        }

        impl<'r> sqlx::Decode<'r, sqlx::Sqlite> for $name {
            fn decode(value: sqlx::sqlite::SqliteValueRef<'r>) -> Result<Self, sqlx::error::BoxDynError> {
                match <&str as sqlx::Decode<'r, sqlx::Sqlite>>::decode(value)? {
                    $($word => Ok(Self::$variant),)+
                    unknown => Err(format!("`{unknown}` is not a word of {}", stringify!($name)).into()),
                }
            }
        }
    };
}

pub(crate) use {from_row, words};
