//! Mockito, as Debian has it: its inline mocks read class files as resources.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use xtask::workloads::SHARE_JAVA;

/// Debian's package with Mockito, and those that it needs.
pub const PACKAGE: &str = "libmockito-java";

/// Classes of the JDK are newer than what Debian's Byte Buddy knows.
pub const NEWER: &str = "-Dnet.bytebuddy.experimental=true";

/// Where Mockito looks for the maker of its mocks, below a folder of the class path.
pub const MOCK_MAKER: &str = "mockito-extensions/org.mockito.plugins.MockMaker";

/// The maker that changes classes where they are, so that final ones can be mocked.
pub const INLINE: &str = "mock-maker-inline\n";

/// Mockito and its dependencies.
pub fn jars() -> [PathBuf; 4] {
    ["mockito-core", "byte-buddy", "byte-buddy-agent", "objenesis"]
        .map(|name| Path::new(SHARE_JAVA).join(format!("{name}.jar")))
}

/// Why mocks cannot be tested; `None` if they can.
pub fn obstacle() -> Option<String> {
    let missing = jars().iter().any(|jar| !jar.is_file());
    missing.then(|| format!("please install {PACKAGE} (Debian's name)"))
}

/// Adds a test with a mock of a final class, of two class files, to an example of a build tool.
pub fn add_test(folder: &Path) -> Result<()> {
    let maker = folder.join("src/test/resources").join(MOCK_MAKER);
    fs::create_dir_all(maker.parent().unwrap_or(folder))?;
    fs::write(maker, INLINE)?;
    fs::write(folder.join("src/test/java/words/MocksTest.java"), TEST)?;
    Ok(())
}

const TEST: &str = "
package words;

import static org.junit.Assert.assertEquals;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.when;

import org.junit.Test;

public class MocksTest {
    static final class Real {
        int twice(int number) {
            return 2 * number;
        }
    }

    @Test
    public void finalClassesAreMocked() {
        Real mock = mock(Real.class);
        assertEquals(0, mock.twice(1));
        when(mock.twice(1)).thenReturn(7);
        assertEquals(7, mock.twice(1));
        assertEquals(2, new Real().twice(1));
    }
}
";
