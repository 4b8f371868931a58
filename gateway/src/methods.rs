//! One line per MCP method.
