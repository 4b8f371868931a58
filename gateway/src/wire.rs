//! The only MCP serde types.
