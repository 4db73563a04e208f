//! Field names as JavaScript's strings, each made once: to carry one over costs more than the arithmetic of a plan.

use std::cell::RefCell;
use wasm_bindgen::JsValue;

thread_local! {
    /// The contract has some sixty names; to look through them is cheaper than to hash.
    static NAMES: RefCell<Vec<(&'static str, JsValue)>> = const { RefCell::new(Vec::new()) };
}

/// That name as a string of JavaScript's.
pub(crate) fn name(name: &'static str) -> JsValue {
    NAMES.with_borrow_mut(|names| {
        // A literal stays where it is, so that its address tells it. The same text at another one is only kept twice.
        if let Some((_, known)) = names.iter().find(|(known, _)| std::ptr::eq(*known, name)) {
            return known.clone();
        }
        let made = JsValue::from_str(name);
        names.push((name, made.clone()));
        made
    })
}
