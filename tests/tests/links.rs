//! Links between the pages of the documentation lead somewhere, their anchors too.

use anyhow::Result;
use et_tests::links;
use xtask::layout::Layout;

#[test]
fn links_lead_somewhere() -> Result<()> {
    let repo = Layout::find()?.repo;
    let mut pages = vec![repo.join("README.md")];
    for folder in ["docs", "examples"] {
        pages.extend(links::pages(&repo.join(folder))?);
    }
    links::lead_somewhere(&pages)
}
