//! WASI 0.2 in an empty world, so that components of other toolchains load. No network: those functions trap.

use wasmtime::component::{Component, Linker, ResourceType, types::ComponentItem};
use wasmtime_wasi::{
    WasiView,
    cli::{WasiCli, WasiCliView as _},
    filesystem::{WasiFilesystem, WasiFilesystemView as _},
    p2::{
        DynInputStream, DynOutputStream, DynPollable,
        bindings::{cli, filesystem, random},
    },
    random::WasiRandom,
};

use crate::guest::GuestState;

pub(super) fn add_to_linker(linker: &mut Linker<GuestState>) -> wasmtime::Result<()> {
    // This links io, clocks, random and the standard streams.
    wasmtime_wasi::p2::add_to_linker_proxy_interfaces_async(linker)?;
    // These link the rest of the command world except for sockets.
    random::insecure::add_to_linker::<_, WasiRandom>(linker, |guest| guest.ctx().ctx.random())?;
    random::insecure_seed::add_to_linker::<_, WasiRandom>(linker, |guest| {
        guest.ctx().ctx.random()
    })?;
    filesystem::preopens::add_to_linker::<_, WasiFilesystem>(linker, GuestState::filesystem)?;
    filesystem::types::add_to_linker::<_, WasiFilesystem>(linker, GuestState::filesystem)?;
    cli::exit::add_to_linker::<_, WasiCli>(linker, GuestState::cli)?;
    cli::environment::add_to_linker::<_, WasiCli>(linker, GuestState::cli)?;
    cli::terminal_input::add_to_linker::<_, WasiCli>(linker, GuestState::cli)?;
    cli::terminal_output::add_to_linker::<_, WasiCli>(linker, GuestState::cli)?;
    cli::terminal_stdin::add_to_linker::<_, WasiCli>(linker, GuestState::cli)?;
    cli::terminal_stdout::add_to_linker::<_, WasiCli>(linker, GuestState::cli)?;
    cli::terminal_stderr::add_to_linker::<_, WasiCli>(linker, GuestState::cli)
}

/// Links what `interfaces` (of `wasi:sockets` and `wasi:http`) hold to functions that trap when called.
pub(crate) fn stub_network(
    linker: &mut Linker<GuestState>,
    component: &Component,
    interfaces: &[String],
) -> wasmtime::Result<()> {
    let ty = component.component_type();
    for name in interfaces {
        let Some(import) = ty.get_import(component.engine(), name) else {
            continue;
        };
        let ComponentItem::ComponentInstance(interface) = import.ty else {
            continue;
        };
        let mut instance = linker.instance(name)?;
        for (item, export) in interface.exports(component.engine()) {
            match export.ty {
                ComponentItem::ComponentFunc(_) => {
                    let called = format!("{name}#{item}");
                    instance.func_new(item, move |_, _, _, _| {
                        Err(wasmtime::Error::msg(format!(
                            "it called `{called}`: plugins have no direct network access"
                        )))
                    })?;
                }
                ComponentItem::Resource(_) => {
                    instance.resource(item, resource(item), |_, _| Ok(()))?
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// Returns the type of a resource. Those that network interfaces borrow from `wasi:io` must be the same ones as there;
/// the rest are never made.
fn resource(name: &str) -> ResourceType {
    match name {
        "pollable" => ResourceType::host::<DynPollable>(),
        "input-stream" => ResourceType::host::<DynInputStream>(),
        "output-stream" => ResourceType::host::<DynOutputStream>(),
        "error" | "io-error" => ResourceType::host::<wasmtime_wasi::p2::IoError>(),
        _ => ResourceType::host::<()>(),
    }
}
