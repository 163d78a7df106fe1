package org.junit.jupiter.api.extension;

/** Stands in for JUnit's while the library is compiled, so that nothing has to be fetched for it. The same holds for its neighbours. */
public interface Extension {
}
