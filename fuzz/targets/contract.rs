//! Any text as a contract file: it is refused with a place and a sentence, or compiles to what can be kept and read again.
#![no_main]

use std::{collections::BTreeMap, sync::OnceLock};

use libfuzzer_sys::fuzz_target;
use weir_contracts::{CompiledContract, CollectionShape, compile, form, lint};

fn shape() -> &'static CollectionShape {
    static SHAPE: OnceLock<CollectionShape> = OnceLock::new();
    SHAPE.get_or_init(|| {
        CollectionShape::read(
            r#"{"name":"notes","key":["id"],"fields":[
                {"key":"id","type":"integer","generated":true},
                {"key":"note","type":"string","nullable":true},
                {"key":"state","type":"string"},
                {"key":"price","type":"decimal"},
                {"key":"due","type":"date"},
                {"key":"tags","type":"list","items":{"key":"tag","type":"string"}},
                {"key":"more","type":"record","fields":[{"key":"a","type":"json"}]}]}"#,
        )
        .expect("a shape")
    })
}

fuzz_target!(|text: &str| {
    let source = match form::read("desk.yaml", text) {
        Ok(source) => source,
        Err(problems) => {
            assert!(
                !problems.is_empty() && problems.iter().all(|problem| !problem.message.is_empty()),
                "{problems:?}"
            );
            return;
        }
    };
    let shapes = BTreeMap::from([("notes".to_owned(), shape().clone())]);
    match compile(&source, &shapes) {
        Ok(contract) => {
            let kept = contract.to_artifact();
            let read = CompiledContract::from_artifact(&kept).expect("what is kept can be read");
            assert_eq!(read.to_artifact().to_string(), kept.to_string());
            let _ = lint::lint_contract(&contract);
        }
        Err(problems) => assert!(!problems.is_empty()),
    }
});
