//! The `#[serde(…)]` attributes that change what a type looks like in JSON. Others are refused: a schema that follows
//! half of them would be wrong.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Attribute, Ident, LitStr, Path, Token, meta::ParseNestedMeta};

use crate::{
    case::RenameRule,
    mistakes::{MacroErrors, unknown},
};

/// The keys on a struct, an enum or a variant.
#[derive(Default)]
pub(crate) struct ContainerKeys {
    pub(crate) rename_all: Option<RenameRule>,
    pub(crate) rename_all_fields: Option<RenameRule>,
    pub(crate) rename: Option<String>,
    pub(crate) tag: Option<String>,
    pub(crate) content: Option<String>,
    pub(crate) untagged: bool,
    pub(crate) transparent: bool,
    pub(crate) closed: bool,
    pub(crate) skip: bool,
    /// The function that makes a missing value.
    pub(crate) default: Option<TokenStream>,
}

/// The keys on a field.
#[derive(Default)]
pub(crate) struct FieldKeys {
    pub(crate) rename: Option<String>,
    pub(crate) skip: bool,
    pub(crate) default: Option<TokenStream>,
    /// Decides whether a value is left out of an answer.
    pub(crate) skip_if: Option<TokenStream>,
}

/// The place of the keys of a [`ContainerKeys`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ContainerKind {
    Struct,
    Enum,
    Variant,
}

/// The keys of a [`ContainerKeys`], and where each has a meaning.
const CONTAINER: [(&str, &[ContainerKind]); 10] = [
    (
        "rename",
        &[
            ContainerKind::Struct,
            ContainerKind::Enum,
            ContainerKind::Variant,
        ],
    ),
    (
        "rename_all",
        &[
            ContainerKind::Struct,
            ContainerKind::Enum,
            ContainerKind::Variant,
        ],
    ),
    ("rename_all_fields", &[ContainerKind::Enum]),
    ("default", &[ContainerKind::Struct]),
    ("tag", &[ContainerKind::Enum]),
    ("content", &[ContainerKind::Enum]),
    ("untagged", &[ContainerKind::Enum]),
    ("transparent", &[ContainerKind::Struct]),
    (
        "deny_unknown_fields",
        &[
            ContainerKind::Struct,
            ContainerKind::Enum,
            ContainerKind::Variant,
        ],
    ),
    ("skip", &[ContainerKind::Variant]),
];
const FIELD: [&str; 4] = ["rename", "default", "skip", "skip_serializing_if"];

impl ContainerKind {
    /// Refuses a key that would be read here and change nothing.
    fn takes(self, key: &Ident) -> syn::Result<()> {
        let Some((_, places)) = CONTAINER.iter().find(|(name, _)| key == name) else {
            return Ok(());
        };
        if places.contains(&self) {
            return Ok(());
        }
        let meant: Vec<&str> = places.iter().map(|place| place.name()).collect();
        let message = format!(
            "`{key}` is for {}, not for {}: leave it out",
            meant.join(" or "),
            self.name()
        );
        Err(syn::Error::new(key.span(), message))
    }

    fn name(self) -> &'static str {
        match self {
            Self::Struct => "a struct",
            Self::Enum => "an enum",
            Self::Variant => "a variant",
        }
    }
}

impl ContainerKeys {
    pub(crate) fn read(
        attributes: &[Attribute],
        place: ContainerKind,
        mistakes: &mut MacroErrors,
    ) -> Self {
        let mut read = Self::default();
        each(attributes, mistakes, |key, meta| {
            place.takes(key)?;
            match key.to_string().as_str() {
                "rename" => read.rename = Some(text(meta)?.value()),
                "rename_all" => read.rename_all = Some(RenameRule::parse(&text(meta)?)?),
                "rename_all_fields" => {
                    read.rename_all_fields = Some(RenameRule::parse(&text(meta)?)?)
                }
                "default" => read.default = Some(default(meta)?),
                "tag" => read.tag = Some(text(meta)?.value()),
                "content" => read.content = Some(text(meta)?.value()),
                "untagged" => read.untagged = true,
                "transparent" => read.transparent = true,
                "deny_unknown_fields" => read.closed = true,
                "skip" => read.skip = true,
                // These keys control how serde's own code is generated, and change nothing in JSON.
                "crate" | "bound" => drop(meta.value()?.parse::<TokenStream>()?),
                other => return Err(refused(key, other, &CONTAINER.map(|(key, _)| key))),
            }
            Ok(())
        });
        read
    }
}

impl FieldKeys {
    pub(crate) fn read(attributes: &[Attribute], mistakes: &mut MacroErrors) -> Self {
        let mut read = Self::default();
        each(attributes, mistakes, |key, meta| {
            match key.to_string().as_str() {
                "rename" => read.rename = Some(text(meta)?.value()),
                "default" => read.default = Some(default(meta)?),
                "skip" => read.skip = true,
                "skip_serializing_if" => {
                    read.skip_if = Some(text(meta)?.parse::<Path>()?.to_token_stream())
                }
                other => return Err(refused(key, other, &FIELD)),
            }
            Ok(())
        });
        read
    }
}

fn each(
    attributes: &[Attribute],
    mistakes: &mut MacroErrors,
    mut read: impl FnMut(&Ident, &ParseNestedMeta<'_>) -> syn::Result<()>,
) {
    for attribute in attributes
        .iter()
        .filter(|attribute| attribute.path().is_ident("serde"))
    {
        let result = attribute.parse_nested_meta(|meta| match meta.path.get_ident().cloned() {
            Some(key) => read(&key, &meta),
            // In `crate = "…"` the keyword is an identifier to syn's paths, so this is something else.
            None => Err(meta.error("write a key of `#[serde(…)]`")),
        });
        if let Err(error) = result {
            mistakes.push(error);
        }
    }
}

/// Reads `key = "text"`. Serde's `rename(serialize = …, deserialize = …)` would be two schemas of one type.
fn text(meta: &ParseNestedMeta<'_>) -> syn::Result<LitStr> {
    if meta.input.peek(Token![=]) {
        return meta.value()?.parse();
    }
    Err(meta.error("one name for what is read and what is printed: write `= \"…\"`"))
}

fn default(meta: &ParseNestedMeta<'_>) -> syn::Result<TokenStream> {
    if meta.input.peek(Token![=]) {
        return Ok(text(meta)?.parse::<Path>()?.to_token_stream());
    }
    Ok(quote!(::core::default::Default::default))
}

fn refused(key: &Ident, name: &str, known: &[&str]) -> syn::Error {
    let message = match name {
        "flatten" => {
            "`flatten` hides what members there are: write the fields here, or the struct as one field".to_owned()
        }
        "with" | "serialize_with" | "deserialize_with" | "from" | "into" | "try_from" | "remote" | "getter" => {
            format!("`{name}` makes JSON that the type does not tell: write a type whose fields are that JSON")
        }
        "alias" | "other" | "skip_serializing" | "skip_deserializing" | "borrow" => {
            format!("`{name}` has no counterpart in the schema: leave it out, or write another type for the tool")
        }
        other => unknown(other, "#[serde(…)]", known),
    };
    syn::Error::new(key.span(), message)
}
