//! Libraries that read class files as resources and put their code into other classes: Byte Buddy's advice, and Mockito's mocks
//! with it. What they read are rewritten copies.

use anyhow::{Result, ensure};
use et_tests::mockito::{self, INLINE, MOCK_MAKER, NEWER};

use crate::Case;
use crate::bench::{Bench, text};

pub const CASES: &[(&str, Case)] = &[("mocks", mocks), ("advice_of_an_agent", advice_of_an_agent)];

/// The releases that classes are changed on.
pub const FEATURES: [u32; 2] = [17, 25];

pub use et_tests::mockito::obstacle;

fn jars() -> String {
    mockito::jars().map(|jar| jar.display().to_string()).join(":")
}

const MOCKS: &str = "
import static org.mockito.Mockito.*;
public class Mocks {
    static final class Real {
        String name() { return \"real\"; }
        int twice(int number) { return 2 * number; }
    }
    public static void main(String[] arguments) {
        Real mock = mock(Real.class);
        String before = mock.name();
        when(mock.twice(1)).thenReturn(7);
        System.out.println(\"mocked \" + before + \" \" + new Real().name() + new Real().twice(1) + \" \" + mock.twice(1));
        System.out.println(mock.equals(mock) + \" \" + (mock.hashCode() == mock.hashCode()));
        verify(mock).name();
    }
}";

fn mocks(bench: &Bench) -> Result<()> {
    let jars = jars();
    // The old Byte Buddy cannot change classes that have nest mates.
    bench.compile(&[("Mocks.java", MOCKS)], &["--release", "8", "-cp", &jars], "classes")?;
    bench.write(&format!("classes/{MOCK_MAKER}"), INLINE)?;
    let ran = bench.both(&[NEWER, "-cp", &format!("classes:{jars}"), "Mocks"])?;
    ensure!(text(&ran.output.stdout) == "mocked null real2 7\ntrue true\n", "{:?}", ran.output);
    ran.made(&["Mocks$Real"])
}

/// Its parameters are left alone, overwritten with values of their types, and with one of a subclass.
const ADVICE: &str = "
package agent;
import net.bytebuddy.asm.Advice;
public class Changes {
    @Advice.OnMethodEnter
    static long enter(@Advice.This Object self, @Advice.Argument(value = 0, readOnly = false) CharSequence text,
                      @Advice.Argument(value = 1, readOnly = false) int number, @Advice.Argument(2) double[] numbers) {
        text = new StringBuilder(text).append('!');
        number++;
        return numbers.length + self.getClass().getName().length();
    }
    @Advice.OnMethodExit(onThrowable = Throwable.class)
    static void exit(@Advice.Enter long entered, @Advice.Return(readOnly = false) Object result,
                     @Advice.Thrown(readOnly = false) Throwable thrown) {
        if (thrown != null) {
            result = \"caught \" + thrown.getMessage() + entered;
            thrown = null;
        } else {
            result = result + \" advised\" + entered;
        }
    }
}";

const ADVISER: &str = "
package agent;
import java.lang.instrument.*;
import java.security.ProtectionDomain;
import net.bytebuddy.ByteBuddy;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.dynamic.ClassFileLocator;
import net.bytebuddy.matcher.ElementMatchers;
import net.bytebuddy.pool.TypePool;
public class Adviser implements ClassFileTransformer {
    public static void premain(String options, Instrumentation instrumentation) {
        instrumentation.addTransformer(new Adviser());
    }
    public byte[] transform(ClassLoader loader, String name, Class<?> old, ProtectionDomain domain, byte[] bytes) {
        if (!\"Main$Target\".equals(name)) return null;
        try {
            ClassFileLocator own = new ClassFileLocator.Compound(
                ClassFileLocator.Simple.of(\"Main$Target\", bytes), ClassFileLocator.ForClassLoader.of(loader));
            return new ByteBuddy().redefine(TypePool.Default.of(own).describe(\"Main$Target\").resolve(), own)
                .visit(Advice.to(Changes.class).on(ElementMatchers.named(\"run\"))).make().getBytes();
        } catch (Throwable error) {
            error.printStackTrace(System.out);
            return null;
        }
    }
}";

const ADVISED: &str = "
public class Main {
    static class Target {
        Object run(CharSequence text, int number, double[] numbers) {
            if (number > 2) throw new IllegalStateException(text.toString());
            return text.toString() + number;
        }
    }
    public static void main(String[] arguments) {
        for (int i = 1; i < 4; i++) System.out.println(new Target().run(\"text\", i, new double[i]));
    }
}";

fn advice_of_an_agent(bench: &Bench) -> Result<()> {
    let jars = jars();
    bench.compile(&[("Changes.java", ADVICE), ("Adviser.java", ADVISER)], &["-cp", &jars], "agent")?;
    bench.write("agent.mf", "Premain-Class: agent.Adviser\n")?;
    bench.jar("agent.jar", &["--manifest=agent.mf"], "agent")?;
    bench.compile(&[("Main.java", ADVISED)], &[], "classes")?;
    let ran = bench.both(&[NEWER, "-javaagent:agent.jar", "-cp", &format!("classes:{jars}"), "Main"])?;
    let expected = "text!2 advised12\ncaught text!13\ncaught text!14\n";
    ensure!(text(&ran.output.stdout) == expected, "{}", text(&ran.output.stdout));
    ran.made(&["Main$Target"])
}
