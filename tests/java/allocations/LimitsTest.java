import static org.junit.jupiter.api.Assertions.assertEquals;

import org.elephanttracks.test.Allocations;
import org.elephanttracks.test.MaxAllocations;
import org.elephanttracks.test.NoAllocations;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;

/** Tests that pass and tests that fail, by their names. */
class LimitsTest {
    static class Point {
    }

    static Object sink;
    int prepared;
    int runs;

    @BeforeEach
    void prepare() {
        sink = new int[100];
        prepared++;
    }

    @Test
    @NoAllocations
    void passesWithout() {
        assertEquals(1, prepared);
        runs++;
    }

    @Test
    @MaxAllocations(objects = 2, bytes = 40)
    void passesWithAsMany() {
        sink = new Point();
        sink = new int[2];
    }

    @Test
    @MaxAllocations(objects = 0, warmUp = 3)
    void passesOnlyWarm() {
        if (++runs < 4) {
            sink = new Point();
        }
    }

    @RepeatedTest(2)
    @NoAllocations
    void passesAsTemplate() {
    }

    @Test
    void passesUnlimited() {
        assertEquals(1, Allocations.of(() -> sink = new Point()).objects());
    }

    @Test
    @NoAllocations
    void failsWithOne() {
        sink = new Point();
    }

    @Test
    @MaxAllocations(bytes = 400)
    void failsByBytes() {
        sink = new int[100];
    }

    @Test
    @MaxAllocations
    void failsWithoutLimit() {
    }

    @Nested
    @NoAllocations
    class OfClass {
        @Test
        void failsAsItsClassSays() {
            sink = new Point();
        }

        @Test
        @MaxAllocations(objects = 1)
        void passesAsItSaysItself() {
            sink = new Point();
        }
    }
}
