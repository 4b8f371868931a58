//! Names of contracts, tools and fields.

/// `[A-Za-z0-9_-]{1,64}`: what every known client accepts; one bad name costs some of them the whole list.
pub fn is_tool(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}
