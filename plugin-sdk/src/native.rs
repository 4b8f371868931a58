//! Makes a plugin a native library: the same functions as a component's exports, behind one C symbol.
//!
//! With the feature `native`, [`crate::export!`] makes `weir_plugin_abi` in addition to the component's exports. `abi`
//! is the C interface, and `wire` defines the content of its messages; the gateway compiles these two files as well.
//! `native/weir-plugin.h` has both in C.

#[doc(hidden)]
#[expect(unsafe_code, reason = "the interface is in the words of C")]
pub mod abi;
pub(crate) mod calls;
mod exports;
#[expect(unsafe_code, reason = "the gateway is called through pointers")]
mod host;
mod wire;

#[doc(hidden)]
pub use host::table;

/// Adds the part of a plugin's [`crate::export!`] that a native library has.
#[doc(hidden)]
#[macro_export]
macro_rules! export_native {
    ($plugin:ident) => {
        #[cfg(panic = "abort")]
        compile_error!(
            "a native plugin must not abort where it panics, since its panics are caught: build it with panic = \"unwind\""
        );

        #[allow(unsafe_code, unreachable_pub, reason = "the symbol is looked up by name")]
        mod weir_native_export {
            /// Takes the gateway's table of functions, and returns the plugin's. The pointer is null if `abi` is
            /// another version or `host` is null.
            #[unsafe(no_mangle)]
            pub extern "C" fn weir_plugin_abi(
                abi: u32,
                host: *const $crate::native::abi::Table,
            ) -> *const $crate::native::abi::Table {
                $crate::native::table::<super::$plugin>(abi, host)
            }
        }
    };
}
