//! Parameters and fields: what the macros know about one, and the object schema they make together.

use serde_json::Value;

use super::{Kind, Mismatch, ToolSchema, Writer, write_text};

/// The functions of one type, with its trait erased.
///
/// The code of the macros names [`ToolSchema`] only in [`Parameter::of`], so that a type without a schema is one error,
/// at the type.
pub struct Parameter<T> {
    /// The kind of value that constraints apply to.
    pub kind: Kind,
    /// Reads a value.
    pub read: fn(Value) -> Result<T, Mismatch>,
    /// Returns the value if none is given.
    pub absent: fn() -> Option<T>,
    /// Appends a value as JSON.
    pub print: fn(&T, &mut String),
    /// Returns `true` for a value that a field may leave out of an answer.
    pub is_absent: fn(&T) -> bool,
    optional: bool,
    write: fn(&mut Writer),
    write_present: fn(&mut Writer),
}

impl<T: ToolSchema> Parameter<T> {
    /// Whether the type has a schema: here it has.
    pub const KNOWN: bool = true;

    /// The functions of the type.
    pub const OF: Self = Self::of();

    /// Returns the functions of the type, for a type that names the parameters of an item around it.
    pub const fn of() -> Self {
        Self {
            kind: T::KIND,
            read: T::read,
            absent: T::absent,
            print: T::print,
            is_absent: T::is_absent,
            optional: T::OPTIONAL,
            write: T::write,
            write_present: T::write_present,
        }
    }
}

/// Replaces [`Parameter`]'s own constants if the type has no schema: the code of the macros asserts `KNOWN`, and states
/// in words what is missing. A bound would state it in names of traits.
pub trait Unknown: Sized {
    /// Whether the type has a schema: here it has none.
    const KNOWN: bool = false;
    /// A stand-in, so that there is one error and not many.
    const OF: Self;
}

impl<T> Unknown for Parameter<T> {
    const OF: Self = Self {
        kind: Kind::Unknown,
        read: |_| Err(Mismatch::new("has no schema")),
        absent: || None,
        print: |_, _| {},
        is_absent: |_| false,
        optional: true,
        write: |_| {},
        write_present: |_| {},
    };
}

/// Decides whether a type can be the key of a map.
pub struct Key<T>(std::marker::PhantomData<T>);

impl<T: super::MapKey> Key<T> {
    /// Whether the type can be a key: here it can.
    pub const KNOWN: bool = true;
}

impl<T> Unknown for Key<T> {
    const OF: Self = Self(std::marker::PhantomData);
}

impl<T> Parameter<T> {
    /// Returns `true` for an `Option`.
    pub const fn is_optional(&self) -> bool {
        self.optional
    }

    /// Returns `true` if each value of the type is an object, so that the tag of an enum can stand among its members.
    pub const fn is_object(&self) -> bool {
        matches!(self.kind, Kind::Unknown) || !self.optional && self.kind.is_object()
    }

    /// Returns `true` if the type does not determine the kind of its values.
    pub const fn is_any(&self) -> bool {
        matches!(self.kind, Kind::Any) && !self.optional
    }

    /// Returns a property of this type, with nothing stated in `#[arg(…)]`.
    pub const fn property(&self, name: &'static str) -> Property {
        Property {
            name,
            kind: self.kind,
            write: self.write,
            write_present: self.write_present,
            optional: self.optional,
            required: !self.optional,
            rules: &[],
            default: Default::None,
            nulls: Nulls::Never,
            left_out: false,
            cli: None,
        }
    }
}

/// A property of an object: a parameter of a tool, or a field of a struct.
#[derive(Clone, Copy)]
pub struct Property {
    /// The name in JSON.
    pub name: &'static str,
    /// The kind of value that the constraints are about.
    pub kind: Kind,
    /// The rules in `#[arg(…)]` and in the documentation.
    pub rules: &'static [Rule],
    /// The value of an absent property.
    pub default: Default,
    /// Whether the property must not be left out.
    pub required: bool,
    /// The places in which null means an absent value.
    pub nulls: Nulls,
    /// Whether an answer may leave the property out although a caller may not.
    pub left_out: bool,
    /// The way in which `weir call` takes the parameter.
    pub cli: Option<Cli>,
    optional: bool,
    write: fn(&mut Writer),
    write_present: fn(&mut Writer),
}

/// The places in which null means an `Option` that is `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nulls {
    /// Null is nowhere: the property is left out.
    Never,
    /// Null is in an answer, which prints it; a caller leaves the property out.
    InOutput,
    /// Null is in both: a value without a name cannot be left out.
    Always,
}

/// A constraint or annotation of a property.
#[derive(Clone, Copy, Debug)]
pub enum Rule {
    /// The least length, or number of elements.
    MinLen(u64),
    /// The greatest length, or number of elements.
    MaxLen(u64),
    /// The exclusive minimum; the number as JSON.
    Gt(&'static str),
    /// The exclusive maximum.
    Lt(&'static str),
    /// The minimum.
    Ge(&'static str),
    /// The maximum.
    Le(&'static str),
    /// A regular expression.
    Pattern(&'static str),
    /// A format of JSON Schema.
    Format(&'static str),
    /// A title for people.
    Title(&'static str),
    /// A description.
    Description(&'static str),
    /// A JSON array.
    Examples(&'static str),
}

/// The value of an absent property.
#[derive(Clone, Copy)]
pub enum Default {
    /// No default is stated.
    None,
    /// A literal, as JSON.
    Json(&'static str),
    /// Another expression: it is made when the tool is described, and checked against the schema then.
    Made(fn() -> String),
    /// A default that the schema does not state: `#[serde(default)]`.
    Silent,
}

/// The way in which `weir call` takes a parameter.
#[derive(Clone, Copy, Debug)]
pub struct Cli {
    /// Whether the value comes without a flag, in the order of the parameters.
    pub positional: bool,
    /// Further flags: `-e`.
    pub aliases: &'static [&'static str],
    /// The name of the value in the help.
    pub metavar: Option<&'static str>,
}

impl Property {
    /// Adds these constraints.
    pub const fn rules(mut self, rules: &'static [Rule]) -> Self {
        self.rules = rules;
        self
    }

    /// Makes the property one that is never left out.
    pub const fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// Adds a default, so that the property is not required.
    pub const fn default(mut self, default: Default) -> Self {
        self.default = default;
        self.required = false;
        self
    }

    /// Makes the property a parameter: for an `Option` without a default, null is the default.
    pub const fn parameter(mut self) -> Self {
        if self.optional && !self.required && matches!(self.default, Default::None) {
            self.default = Default::Json("null");
        }
        self
    }

    /// Refuses a type that is not an object.
    ///
    /// # Panics
    ///
    /// Panics in a constant, so that it does not compile.
    pub const fn object(self) -> Self {
        assert!(
            !self.optional && self.kind.is_object(),
            "the tag of an enum is a member of an object; a schema written by hand says that it is one by `const \
             KIND: Kind = Kind::Object`"
        );
        self
    }

    /// Prints null for `None`.
    pub const fn nulls(mut self) -> Self {
        self.nulls = Nulls::Always;
        self
    }

    /// Prints null for `None` in an answer.
    pub const fn nulls_in_output(mut self) -> Self {
        self.nulls = Nulls::InOutput;
        self
    }

    /// Allows an answer to leave the property out.
    pub const fn may_be_left_out(mut self) -> Self {
        self.left_out = true;
        self
    }

    /// Sets the way in which the command line takes it.
    pub const fn cli(mut self, cli: Cli) -> Self {
        self.cli = Some(cli);
        self
    }

    /// Returns the default as JSON.
    pub fn default_json(&self) -> Option<String> {
        match self.default {
            Default::Json(json) => Some(json.to_owned()),
            Default::Made(make) => Some(make()),
            Default::None | Default::Silent => None,
        }
    }

    /// Writes the schema of the property, with its constraints and its default.
    pub fn write(&self, schema: &mut Writer) {
        let nulls = match self.nulls {
            Nulls::Never => false,
            Nulls::InOutput => schema.is_output(),
            Nulls::Always => true,
        };
        if nulls {
            (self.write)(schema)
        } else {
            (self.write_present)(schema)
        }
        for rule in self.rules {
            rule.write(self.kind, schema);
        }
        if let Some(default) = self.default_json() {
            schema.set("default", default);
        }
    }
}

impl Rule {
    fn write(self, kind: Kind, schema: &mut Writer) {
        let (least, most) = match kind {
            Kind::List => ("minItems", "maxItems"),
            Kind::Map => ("minProperties", "maxProperties"),
            _ => ("minLength", "maxLength"),
        };
        match self {
            Self::MinLen(length) => schema.set(least, length.to_string()),
            Self::MaxLen(length) => schema.set(most, length.to_string()),
            // A stricter bound makes the bound of the type redundant.
            Self::Gt(number) => {
                schema.unset("minimum");
                schema.set("exclusiveMinimum", number);
            }
            Self::Lt(number) => {
                schema.unset("maximum");
                schema.set("exclusiveMaximum", number);
            }
            Self::Ge(number) => schema.set("minimum", number),
            Self::Le(number) => schema.set("maximum", number),
            Self::Pattern(pattern) => schema.set_text("pattern", pattern),
            Self::Format(format) => schema.set_text("format", format),
            Self::Title(title) => schema.set_text("title", title),
            Self::Description(description) => schema.set_text("description", description),
            Self::Examples(json) => schema.set("examples", json),
        }
    }
}

/// Writes an object of these properties. `closed` means that no other member is accepted.
pub fn write_object(properties: &[Property], closed: bool, schema: &mut Writer) {
    let mut members = String::from("{");
    let mut required: Vec<String> = Vec::new();
    for property in properties {
        if members.len() > 1 {
            members.push(',');
        }
        members.push_str(&write_text(property.name));
        members.push(':');
        members.push_str(&schema.inner_with(&mut |schema| property.write(schema)));
        if property.required && !(property.left_out && schema.is_output()) {
            required.push(write_text(property.name));
        }
    }
    members.push('}');
    schema.set("type", "\"object\"");
    schema.set("properties", members);
    if !required.is_empty() {
        schema.set("required", format!("[{}]", required.join(",")));
    }
    if closed {
        schema.set("additionalProperties", "false");
    }
}

/// Writes a list of these items, which have no names.
pub fn write_tuple(items: &[Property], schema: &mut Writer) {
    let texts: Vec<String> = items
        .iter()
        .map(|item| schema.inner_with(&mut |schema| item.write(schema)))
        .collect();
    schema.set("type", "\"array\"");
    schema.set("prefixItems", format!("[{}]", texts.join(",")));
    schema.set("minItems", items.len().to_string());
    schema.set("maxItems", items.len().to_string());
}
