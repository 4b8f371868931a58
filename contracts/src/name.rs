//! Names of contracts, tools and fields.
