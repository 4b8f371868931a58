//! The generated half of the plugin interface. It has one module per version: a new major version is added next to the old one.

/// `weir:plugin@0.1.2`, which components of 0.1.0 and 0.1.1 link against as well. The world is the host's own and not
/// published: it links every import, and exported interfaces are looked up one by one, so that a plugin may leave out
/// interfaces that it does not need.
pub(crate) mod v0_1 {
    wasmtime::component::bindgen!({
        path: "../../plugin-sdk/wit/0.1.2",
        inline: "package weir:host; world gateway { include weir:plugin/summarizing-adapter@0.1.2; include weir:plugin/toolbox@0.1.2; export weir:plugin/items@0.1.2; import weir:plugin/events@0.1.2; import weir:plugin/parts@0.1.2; import weir:plugin/index@0.1.2; }",
        world: "weir:host/gateway",
        imports: { default: async | trappable },
        exports: { default: async },
        ownership: Borrowing { duplicate_if_necessary: false },
    });
}
