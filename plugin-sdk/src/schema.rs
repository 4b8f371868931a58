//! Defines a Rust type as JSON: its schema, how a value is read, and how one is printed.
//!
//! [`ToolSchema`] is implemented for the types of the table in `docs/tools-from-code.md`; `#[data]` and
//! `#[derive(ToolSchema)]` implement it for an author's own structs and enums. The schemas are JSON Schema 2020-12.

mod containers;
mod enums;
mod fits;
mod kind;
mod map;
mod numbers;
mod object;
mod property;
mod texts;
mod writer;

pub use enums::{
    Variant, variant, write_beside, write_choice, write_inside, write_numbers, write_outside,
    write_untagged,
};
pub use fits::fits;
pub use kind::Kind;
pub use map::MapKey;
pub use object::{
    Fields, elements, print_element, print_field, print_member, splice_tag, tuple_elements,
};
pub use property::{
    Cli, Default, Key, Nulls, Parameter, Property, Rule, Unknown, write_object, write_tuple,
};
pub use writer::{Writer, write_text};

use serde_json::Value;

/// A type with an honest JSON schema: what a tool may take and answer.
///
/// Write `#[data]` above a struct or an enum to implement it. An implementation by hand sets the keywords of the schema on
/// the [`Writer`], which is already inside the schema's braces:
///
/// ```
/// use weir_plugin_sdk::schema::{Mismatch, ToolSchema, Writer};
/// use weir_plugin_sdk::serde_json::Value;
///
/// struct Even(i64);
///
/// impl ToolSchema for Even {
///     fn write(schema: &mut Writer) {
///         schema.set("type", r#""integer""#);
///         schema.set("multipleOf", "2");
///     }
///
///     fn read(value: Value) -> Result<Self, Mismatch> {
///         match i64::read(value)? {
///             even if even % 2 == 0 => Ok(Self(even)),
///             odd => Err(Mismatch::new(format!("{odd} is not even"))),
///         }
///     }
///
///     fn print(&self, out: &mut String) {
///         self.0.print(out);
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no schema, so no tool can take or answer it",
    label = "a type without a schema",
    note = "write `#[data]` above a struct or an enum of your own, or take a type of the table in docs/tools-from-code.md"
)]
pub trait ToolSchema: Sized {
    /// The kind of all values. The constraints and literal defaults of `#[arg(…)]` are checked against it, and a variant of
    /// an enum with `#[serde(tag = …)]` may only contain objects. A type that does not set it is [`Kind::Any`], which no
    /// constraint bounds and no such variant may contain:
    ///
    /// ```
    /// # use weir_plugin_sdk::schema::{Fields, Kind, Mismatch, ToolSchema, Writer};
    /// # use weir_plugin_sdk::serde_json::Value;
    /// # struct Anchor;
    /// impl ToolSchema for Anchor {
    ///     const KIND: Kind = Kind::Object;
    /// #   fn write(schema: &mut Writer) { schema.set("type", r#""object""#); }
    /// #   fn read(value: Value) -> Result<Self, Mismatch> { Fields::of(value).map(|_| Self) }
    /// #   fn print(&self, out: &mut String) { out.push_str("{}"); }
    ///     // …
    /// }
    /// ```
    const KIND: Kind = Kind::Any;

    /// Sets the keywords of the schema.
    fn write(schema: &mut Writer);

    /// Reads a value. The gateway has validated it already, so a mismatch is rare.
    fn read(value: Value) -> Result<Self, Mismatch>;

    /// Appends the value as JSON.
    fn print(&self, out: &mut String);

    /// Whether the type is an `Option`: a parameter or a field of it may be left out.
    #[doc(hidden)]
    const OPTIONAL: bool = false;

    /// Whether the type is `u8`, whose lists are refused: they are meant as bytes.
    #[doc(hidden)]
    const BYTE: bool = false;

    /// Writes the schema of a present value: without the null of an `Option`.
    #[doc(hidden)]
    fn write_present(schema: &mut Writer) {
        Self::write(schema);
    }

    /// Returns the value if none is given.
    #[doc(hidden)]
    fn absent() -> Option<Self> {
        None
    }

    #[doc(hidden)]
    fn is_absent(&self) -> bool {
        false
    }
}

/// A value that is not of its type: the expected type, and the place of the value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// Member names and indices with dots between them; empty for the whole value.
    pub path: String,
    /// The fault, as the end of a sentence: `must be a text`.
    pub message: String,
}

impl Mismatch {
    /// Creates a mismatch of the whole value.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            path: String::new(),
            message: message.into(),
        }
    }

    /// Returns the same mismatch, seen from the value around it.
    pub fn inside(mut self, name: &str) -> Self {
        self.path = if self.path.is_empty() {
            name.to_owned()
        } else {
            format!("{name}.{}", self.path)
        };
        self
    }
}

impl From<Mismatch> for crate::Error {
    fn from(mismatch: Mismatch) -> Self {
        let Mismatch { path, message } = mismatch;
        if path.is_empty() {
            return Self::invalid(format!("The value {message}."));
        }
        Self::invalid(format!("`{path}` {message}.")).field(path)
    }
}

/// Returns the schema of a type as JSON, for an input: `schema_of::<Region>()`.
pub fn schema_of<T: ToolSchema>() -> String {
    Writer::for_input().whole(T::write)
}
