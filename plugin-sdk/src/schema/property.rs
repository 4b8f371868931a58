//! Parameters and fields: what the macros know of one, and the object schema they make together.

use serde_json::Value;

use super::{Kind, Mismatch, ToolSchema, Writer, write_text};

/// What one type can do, its trait left behind.
///
/// The code of the macros names [`ToolSchema`] only in [`Parameter::of`], so that a type without a schema is one error,
/// at the type.
pub struct Parameter<T> {
    /// What constraints may bound.
    pub kind: Kind,
    /// Reads a value.
    pub read: fn(Value) -> Result<T, Mismatch>,
    /// The value where none is given.
    pub absent: fn() -> Option<T>,
    /// Appends a value as JSON.
    pub print: fn(&T, &mut String),
    /// True for a value that a field may leave out of an answer.
    pub is_absent: fn(&T) -> bool,
    optional: bool,
    write: fn(&mut Writer),
    write_present: fn(&mut Writer),
}

impl<T: ToolSchema> Parameter<T> {
    /// True: the type has a schema.
    pub const KNOWN: bool = true;

    /// Everything of the type.
    pub const OF: Self = Self::of();

    /// Everything of the type, where it names the parameters of an item around it.
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

/// Stands in for [`Parameter`]'s own constants where the type has no schema: the code of the macros asserts `KNOWN`, and
/// says in words what is missing. A bound would say it in the names of traits.
pub trait Unknown: Sized {
    /// False: the type has no schema.
    const KNOWN: bool = false;
    /// Something to name, so that there is one error and not many.
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

/// Whether a type can be the key of a map.
pub struct Key<T>(std::marker::PhantomData<T>);

impl<T: super::MapKey> Key<T> {
    /// True: it can.
    pub const KNOWN: bool = true;
}

impl<T> Unknown for Key<T> {
    const OF: Self = Self(std::marker::PhantomData);
}

impl<T> Parameter<T> {
    /// True for an `Option`.
    pub const fn is_optional(&self) -> bool {
        self.optional
    }

    /// A property of this type, without anything said in `#[arg(…)]`.
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

/// One property of an object: a parameter of a tool, or a field of a struct.
#[derive(Clone, Copy)]
pub struct Property {
    /// Its name in JSON.
    pub name: &'static str,
    /// What the constraints are about.
    pub kind: Kind,
    /// What stands in `#[arg(…)]` and in the documentation.
    pub rules: &'static [Rule],
    /// What holds where the property is left out.
    pub default: Default,
    /// True where it may not be left out.
    pub required: bool,
    /// Where null stands for a value that is left out.
    pub nulls: Nulls,
    /// True where an answer may leave the property out although a caller may not.
    pub left_out: bool,
    /// How `weir call` takes it.
    pub cli: Option<Cli>,
    optional: bool,
    write: fn(&mut Writer),
    write_present: fn(&mut Writer),
}

/// Where null stands for an `Option` that is `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nulls {
    /// Nowhere: the property is left out.
    Never,
    /// In an answer, which prints it; a caller leaves it out.
    InOutput,
    /// In both: what has no name cannot be left out.
    Always,
}

/// One constraint or annotation of a property.
#[derive(Clone, Copy, Debug)]
pub enum Rule {
    /// At least as long, or as many.
    MinLen(u64),
    /// At most as long, or as many.
    MaxLen(u64),
    /// Greater than; the number as JSON.
    Gt(&'static str),
    /// Less than.
    Lt(&'static str),
    /// At least.
    Ge(&'static str),
    /// At most.
    Le(&'static str),
    /// A regular expression.
    Pattern(&'static str),
    /// A format of JSON Schema.
    Format(&'static str),
    /// A title for people.
    Title(&'static str),
    /// What it is.
    Description(&'static str),
    /// A JSON array.
    Examples(&'static str),
}

/// What holds where a property is left out.
#[derive(Clone, Copy)]
pub enum Default {
    /// Nothing is said.
    None,
    /// A literal, as JSON.
    Json(&'static str),
    /// Another expression: it is made when the tool is described, and checked against the schema then.
    Made(fn() -> String),
    /// Something that the schema does not tell: `#[serde(default)]`.
    Silent,
}

/// How `weir call` takes a parameter.
#[derive(Clone, Copy, Debug)]
pub struct Cli {
    /// Without a flag, in the order of the parameters.
    pub positional: bool,
    /// Further flags: `-e`.
    pub aliases: &'static [&'static str],
    /// What the help calls the value.
    pub metavar: Option<&'static str>,
}

impl Property {
    /// With these constraints.
    pub const fn rules(mut self, rules: &'static [Rule]) -> Self {
        self.rules = rules;
        self
    }

    /// Never left out.
    pub const fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// With a default, and so never required.
    pub const fn default(mut self, default: Default) -> Self {
        self.default = default;
        self.required = false;
        self
    }

    /// As a parameter: an `Option` without a default has null for one.
    pub const fn parameter(mut self) -> Self {
        if self.optional && !self.required && matches!(self.default, Default::None) {
            self.default = Default::Json("null");
        }
        self
    }

    /// Null where it is `None`.
    pub const fn nulls(mut self) -> Self {
        self.nulls = Nulls::Always;
        self
    }

    /// Null in an answer where it is `None`.
    pub const fn nulls_in_output(mut self) -> Self {
        self.nulls = Nulls::InOutput;
        self
    }

    /// An answer may leave it out.
    pub const fn may_be_left_out(mut self) -> Self {
        self.left_out = true;
        self
    }

    /// On the command line.
    pub const fn cli(mut self, cli: Cli) -> Self {
        self.cli = Some(cli);
        self
    }

    /// The default as JSON.
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
            // The bound of the type says less than a stricter one beside it.
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

/// Writes an object of these properties. `closed`: no other member is taken.
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
    let texts: Vec<String> = items.iter().map(|item| schema.inner_with(&mut |schema| item.write(schema))).collect();
    schema.set("type", "\"array\"");
    schema.set("prefixItems", format!("[{}]", texts.join(",")));
    schema.set("minItems", items.len().to_string());
    schema.set("maxItems", items.len().to_string());
}
