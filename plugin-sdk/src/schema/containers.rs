//! Lists, sets, arrays, tuples, options, and what only holds another value.

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::hash::{BuildHasher, Hash};
use std::rc::Rc;
use std::sync::Arc;

use serde_json::Value;

use super::{
    Kind, Mismatch, Parameter, ToolSchema, Writer, elements, print_element, tuple_elements,
    write_tuple,
};

fn write_list<T: ToolSchema>(schema: &mut Writer) {
    const {
        assert!(
            !T::BYTE,
            "a list of u8 is a list of numbers: write `Bytes`, which is base64"
        )
    };
    schema.set("type", "\"array\"");
    let items = schema.inner(T::write);
    if items != "{}" {
        schema.set("items", items);
    }
}

fn read_list<T: ToolSchema, L: FromIterator<T>>(value: Value) -> Result<L, Mismatch> {
    let read = elements(value)?.into_iter().enumerate();
    read.map(|(at, value)| T::read(value).map_err(|mismatch| mismatch.inside(&at.to_string())))
        .collect()
}

fn print_list<'a, T: ToolSchema + 'a>(values: impl Iterator<Item = &'a T>, out: &mut String) {
    out.push('[');
    for value in values {
        print_element(value, out);
    }
    out.push(']');
}

macro_rules! lists {
    ($($list:ident),+) => {$(
        impl<T: ToolSchema> ToolSchema for $list<T> {
            const KIND: Kind = Kind::List;

            fn write(schema: &mut Writer) {
                write_list::<T>(schema);
            }

            fn read(value: Value) -> Result<Self, Mismatch> {
                read_list(value)
            }

            fn print(&self, out: &mut String) {
                print_list(self.iter(), out);
            }
        }
    )+};
}

lists!(Vec, VecDeque);

impl<T: ToolSchema + Ord> ToolSchema for BTreeSet<T> {
    const KIND: Kind = Kind::List;

    fn write(schema: &mut Writer) {
        write_list::<T>(schema);
        schema.set("uniqueItems", "true");
    }

    fn read(value: Value) -> Result<Self, Mismatch> {
        read_list(value)
    }

    fn print(&self, out: &mut String) {
        print_list(self.iter(), out);
    }
}

impl<T: ToolSchema + Hash + Eq, S: BuildHasher + Default> ToolSchema for HashSet<T, S> {
    const KIND: Kind = Kind::List;

    fn write(schema: &mut Writer) {
        write_list::<T>(schema);
        schema.set("uniqueItems", "true");
    }

    fn read(value: Value) -> Result<Self, Mismatch> {
        read_list(value)
    }

    /// Prints the set in the order of its texts, so that equal sets are equal bytes.
    fn print(&self, out: &mut String) {
        let print = |value: &T| {
            let mut text = String::new();
            value.print(&mut text);
            text
        };
        let mut texts: Vec<String> = self.iter().map(print).collect();
        texts.sort_unstable();
        out.push('[');
        out.push_str(&texts.join(","));
        out.push(']');
    }
}

impl<T: ToolSchema, const N: usize> ToolSchema for [T; N] {
    const KIND: Kind = Kind::FixedList;

    fn write(schema: &mut Writer) {
        write_list::<T>(schema);
        schema.set("minItems", N.to_string());
        schema.set("maxItems", N.to_string());
    }

    fn read(value: Value) -> Result<Self, Mismatch> {
        let values: Vec<T> = read_list(value)?;
        values
            .try_into()
            .map_err(|_| Mismatch::new(format!("must have {N} items")))
    }

    fn print(&self, out: &mut String) {
        print_list(self.iter(), out);
    }
}

macro_rules! tuples {
    ($($count:literal: $($name:ident $at:tt),+;)+) => {$(
        impl<$($name: ToolSchema),+> ToolSchema for ($($name,)+) {
            const KIND: Kind = Kind::FixedList;

            fn write(schema: &mut Writer) {
                write_tuple(&[$(Parameter::<$name>::of().property("").nulls()),+], schema);
            }

            fn read(value: Value) -> Result<Self, Mismatch> {
                let mut values = tuple_elements(value, $count)?.into_iter();
                Ok(($($name::read(values.next().unwrap_or_default()).map_err(|mismatch| mismatch.inside(stringify!($at)))?,)+))
            }

            fn print(&self, out: &mut String) {
                out.push('[');
                $(print_element(&self.$at, out);)+
                out.push(']');
            }
        }
    )+};
}

tuples! {
    1: A 0;
    2: A 0, B 1;
    3: A 0, B 1, C 2;
    4: A 0, B 1, C 2, D 3;
    5: A 0, B 1, C 2, D 3, E 4;
    6: A 0, B 1, C 2, D 3, E 4, F 5;
    7: A 0, B 1, C 2, D 3, E 4, F 5, G 6;
    8: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7;
}

/// Null where the value may be missing: in lists, maps, tuples and variants. A parameter or a field of the type is
/// written by `write_present` instead, and left out of `required`.
impl<T: ToolSchema> ToolSchema for Option<T> {
    const KIND: Kind = T::KIND;
    const OPTIONAL: bool = true;

    fn write(schema: &mut Writer) {
        schema.nullable(Self::write_present);
    }

    fn read(value: Value) -> Result<Self, Mismatch> {
        if value.is_null() {
            Ok(None)
        } else {
            T::read(value).map(Some)
        }
    }

    fn print(&self, out: &mut String) {
        match self {
            Some(value) => value.print(out),
            None => out.push_str("null"),
        }
    }

    fn write_present(schema: &mut Writer) {
        const {
            assert!(
                !T::OPTIONAL,
                "an Option in an Option has one null for two meanings: write one `Option`"
            )
        };
        T::write(schema);
    }

    fn absent() -> Option<Self> {
        Some(None)
    }

    fn is_absent(&self) -> bool {
        self.is_none()
    }
}

macro_rules! holders {
    ($($holder:ident),+) => {$(
        impl<T: ToolSchema> ToolSchema for $holder<T> {
            const KIND: Kind = T::KIND;
            const OPTIONAL: bool = T::OPTIONAL;

            fn write(schema: &mut Writer) {
                T::write(schema);
            }

            fn read(value: Value) -> Result<Self, Mismatch> {
                T::read(value).map($holder::new)
            }

            fn print(&self, out: &mut String) {
                T::print(self, out);
            }

            fn write_present(schema: &mut Writer) {
                T::write_present(schema);
            }

            fn absent() -> Option<Self> {
                T::absent().map($holder::new)
            }

            fn is_absent(&self) -> bool {
                T::is_absent(self)
            }
        }
    )+};
}

holders!(Box, Rc, Arc);
