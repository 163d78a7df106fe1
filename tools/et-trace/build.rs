//! Works out the forms of what is kept with life tables, which are part of the names of its files: nobody has to remember them when
//! a type changes.

use std::error::Error;

#[path = "src/cli/kept/forms.rs"]
mod forms;

fn main() -> Result<(), Box<dyn Error>> {
    for folder in forms::folders() {
        println!("cargo:rerun-if-changed={}", folder.display());
    }
    let types = forms::Types::of_workspace()?;
    for (variable, root) in [("ET_FORM_OF_REPORT", "Report"), ("ET_FORM_OF_OBSERVED", "Observed")] {
        let form = types.form(root).ok_or_else(|| format!("no type {root} in the sources"))?;
        println!("cargo:rustc-env={variable}={form}");
    }
    Ok(())
}
