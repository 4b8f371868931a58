//! Signatures by their parameters: each type of the table, each key of `#[arg(…)]`.

// These functions and types are looked at, not run.
#![expect(
    unused_variables,
    dead_code,
    reason = "the signatures alone are looked at"
)]

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::num::{NonZeroU8, NonZeroU16, NonZeroU32, NonZeroU64};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use weir_plugin_sdk::jiff::{Timestamp, civil};
use weir_plugin_sdk::serde_json::{Map, Value};
use weir_plugin_sdk::{Bytes, Context, ToolSchema, data, tool};

/// Where things run.
#[data]
#[serde(rename_all = "kebab-case")]
#[derive(Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Region {
    #[default]
    EuNorth,
    EuSouth,
    #[serde(rename = "us")]
    America,
}

#[data]
#[repr(i32)]
enum Priority {
    Low = 1,
    High = 10,
}

#[data]
struct Limits {
    /// In mebibytes.
    #[arg(ge = 1, le = 4096)]
    memory: u32,
    processors: Option<f32>,
    #[serde(default)]
    tags: Vec<String>,
    #[arg(default = "eu-north")]
    region: Region,
}

#[data]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Strict {
    service_name: String,
    #[serde(skip)]
    kept: u32,
    #[serde(rename = "type")]
    kind: Option<String>,
}

#[data]
#[serde(default)]
#[derive(Default)]
struct Loose {
    name: String,
    count: u32,
}

#[data]
struct Percent(#[arg(ge = 0, le = 100)] u8);

#[data]
#[serde(transparent)]
struct Wrapped {
    inner: Vec<Percent>,
}

#[data]
struct Point(f64, f64);

#[data]
enum Shape {
    Empty,
    Circle(f64),
    Line(Point, Point),
    Rectangle { width: f64, height: Option<f64> },
}

#[data]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Step {
    Wait { seconds: u32 },
    Deploy(Limits),
    StopAll,
}

#[data]
#[serde(tag = "kind", content = "with", rename_all_fields = "camelCase")]
enum Event {
    Started,
    Failed(String),
    Moved {
        from_region: Region,
        to_region: Region,
    },
}

#[data]
#[serde(untagged)]
enum Id {
    Number(u64),
    Text(String),
    None,
}

#[data]
struct Tree {
    name: String,
    #[serde(default)]
    children: Vec<Tree>,
}

#[data]
struct Even {
    odd: Option<Box<Odd>>,
}

#[data]
struct Odd {
    even: Option<Box<Even>>,
}

#[data]
struct Page<T> {
    items: Vec<T>,
    next: Option<T>,
}

#[derive(ToolSchema)]
struct Derived {
    note: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    list: Vec<u32>,
}

fn sizes() -> Vec<u32> {
    vec![1, 2]
}

type Maybe = Option<String>;

#[tool]
fn no_parameters() {}
#[tool]
fn text(value: String) {}
#[tool]
fn lent_text(value: &str) {}
#[tool]
fn cow(value: Cow<str>) {}
#[tool]
fn cow_with_lifetime(value: Cow<'_, str>) {}
#[tool]
fn path(value: PathBuf) {}
#[tool]
fn character(value: char) {}
#[tool]
fn boolean(value: bool) {}
#[tool]
fn floats(single: f32, double: f64) {}
#[tool]
fn signed(a: i8, b: i16, c: i32, d: i64) {}
#[tool]
fn unsigned(a: u8, b: u16, c: u32, d: u64) {}
#[tool]
fn non_zero(a: NonZeroU8, b: NonZeroU16, c: NonZeroU32, d: NonZeroU64) {}
#[tool]
fn list(value: Vec<String>) {}
#[tool]
fn deque(value: VecDeque<u32>) {}
#[tool]
fn list_of_anything(value: Vec<Value>) {}
#[tool]
fn list_of_lists(value: Vec<Vec<f64>>) {}
#[tool]
fn list_of_options(value: Vec<Option<String>>) {}
#[tool]
fn list_of_optional_choices(value: Vec<Option<Region>>) {}
#[tool]
fn array(value: [f64; 3]) {}
#[tool]
fn tuple(value: (String, u32, Option<bool>)) {}
#[tool]
fn single_tuple(value: (String,)) {}
#[tool]
fn largest_tuple(value: (u8, u8, u8, u8, u8, u8, u8, u8)) {}
#[tool]
fn sets(a: HashSet<String>, b: BTreeSet<Region>) {}
#[tool]
fn maps(a: HashMap<String, u32>, b: BTreeMap<String, Vec<String>>) {}
#[tool]
fn map_by_choice(value: BTreeMap<Region, bool>) {}
#[tool]
fn map_of_options(value: BTreeMap<String, Option<u32>>) {}
#[tool]
fn any_object(value: Map<String, Value>) {}
#[tool]
fn anything(value: Value) {}
#[tool]
fn choice(value: Region) {}
#[tool]
fn numbered_choice(value: Priority) {}
#[tool]
fn object(value: Limits) {}
#[tool]
fn closed_object(value: Strict) {}
#[tool]
fn object_of_defaults(value: Loose) {}
#[tool]
fn newtype(value: Percent) {}
#[tool]
fn transparent(value: Wrapped) {}
#[tool]
fn tuple_struct(value: Point) {}
#[tool]
fn variants_named_outside(value: Shape) {}
#[tool]
fn variants_tagged_inside(value: Step) {}
#[tool]
fn variants_tagged_beside(value: Event) {}
#[tool]
fn variants_without_tag(value: Id) {}
#[tool]
#[expect(clippy::boxed_local, reason = "a box is what is tried")]
fn holders(a: Box<u32>, b: Rc<String>, c: Arc<[bool; 2]>) {}
#[tool]
fn recursive(value: Tree) {}
#[tool]
fn recursive_in_two(value: Even, other: Option<Odd>) {}
#[tool]
fn generic(value: Page<Region>, other: Page<String>) {}
#[tool]
fn derived(value: Derived) {}
#[tool]
fn times(day: civil::Date, at: Timestamp, clock: civil::Time) {}
#[tool]
fn bytes(value: Bytes) {}
#[tool]
fn optional(value: Option<String>) {}
#[tool]
fn optional_by_another_name(value: Maybe) {}
#[tool]
fn optional_object(value: Option<Limits>) {}
#[tool]
fn optional_but_required(#[arg(required)] value: Option<u32>) {}
#[tool]
fn optional_with_default(#[arg(default = 5)] value: Option<u32>) {}
#[tool]
fn defaults(
    #[arg(default = "latest")] text: String,
    #[arg(default = -3)] integer: i32,
    #[arg(default = 0.5)] number: f64,
    #[arg(default = true)] boolean: bool,
    #[arg(default = ["a", "b"])] list: Vec<String>,
    #[arg(default = "us")] choice: Region,
    #[arg(default = 1)] whole: f64,
) {
}
#[tool]
fn defaults_by_expression(
    #[arg(default = Region::EuSouth)] region: Region,
    #[arg(default = sizes())] sizes: Vec<u32>,
    #[arg(default)] count: u32,
    #[arg(default = 2 + 3)] sum: i64,
    #[arg(default = Some(7))] maybe: Option<u16>,
) {
}
#[tool]
fn lengths(
    #[arg(min_len = 1, max_len = 64)] text: String,
    #[arg(max_len = 10)] list: Vec<u32>,
    #[arg(min_len = 1)] set: BTreeSet<String>,
    #[arg(max_len = 4)] map: HashMap<String, u32>,
    #[arg(min_len = 2)] maybe: Option<String>,
) {
}
#[tool]
fn bounds(
    #[arg(ge = 1, le = 65535)] port: u16,
    #[arg(gt = 0, lt = 1)] share: f64,
    #[arg(gt = 0)] count: u32,
    #[arg(ge = -90.5)] latitude: f64,
    #[arg(le = 100)] maybe: Option<i64>,
) {
}
#[tool]
fn patterns(
    #[arg(pattern = r"^v\d+(\.\d+)*$")] version: String,
    #[arg(format = "email")] to: &str,
) {
}
#[tool]
fn words(
    /// From the documentation.
    a: String,
    /// From the documentation.
    #[arg(description = "From the key.", title = "B")]
    b: String,
    #[arg(examples = ["web", "db"])] c: String,
    /// Two lines
    /// of one sentence.
    d: u32,
) {
}
#[tool]
fn command_line(
    #[arg(positional)] environment: String,
    #[arg(option(alias = "-s", alias = "--svc", metavar = "NAME"))] service: String,
    #[arg(option(metavar = "TAG"), default = "latest")] version: String,
) {
}
#[tool]
fn context(ctx: &Context, value: u32) {}
#[tool]
fn context_of_any_name(value: u32, call: &Context) {}
#[tool]
fn optional_context(value: u32, call: Option<&Context>) {}
#[tool]
fn raw_name(r#type: String) {}
#[tool]
async fn asynchronous(value: u32) {}
#[tool]
fn mutable(mut value: u32) {
    value += 1;
    let _ = value;
}
/// Restart a service
/// and wait for it.
///
/// The service is stopped first.
#[tool(
    name = "restart-service",
    read_only = false,
    destructive,
    idempotent,
    open_world = false
)]
fn documented(value: String) {}
/// Not this line.
#[tool(
    title = "A title",
    description = "A description.",
    read_only,
    requests("sql", "http")
)]
fn worded(value: String) {}
#[tool(open_world)]
fn undocumented(value: String) {}
#[tool(task)]
fn long(value: String) {}
#[tool(task = "required")]
fn longer(value: String) {}

weir_plugin_sdk::export!(
    tools: no_parameters, text, lent_text, cow, cow_with_lifetime, path, character, boolean, floats, signed, unsigned,
    non_zero, list, deque, list_of_anything, list_of_lists, list_of_options, list_of_optional_choices, array, tuple,
    single_tuple, largest_tuple, sets, maps, map_by_choice, map_of_options, any_object, anything, choice, numbered_choice,
    object, closed_object, object_of_defaults, newtype, transparent, tuple_struct, variants_named_outside,
    variants_tagged_inside, variants_tagged_beside, variants_without_tag, holders, recursive, recursive_in_two, generic,
    derived, times, bytes, optional, optional_by_another_name, optional_object, optional_but_required,
    optional_with_default, defaults, defaults_by_expression, lengths, bounds, patterns, words, command_line, context,
    context_of_any_name, optional_context, raw_name, asynchronous, mutable, documented, worded, undocumented, long,
    longer,
);
