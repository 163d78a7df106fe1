import java.nio.charset.StandardCharsets;
import java.security.KeyFactory;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.MessageDigest;
import java.security.Provider;
import java.security.SecureRandom;
import java.security.Security;
import java.security.Signature;
import java.security.spec.X509EncodedKeySpec;
import java.util.Arrays;
import java.util.Base64;
import javax.crypto.Cipher;
import javax.crypto.KeyAgreement;
import javax.crypto.Mac;
import javax.crypto.SecretKeyFactory;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.PBEKeySpec;
import javax.crypto.spec.SecretKeySpec;

/** The JDK's cryptography, which checks who provides it, and which the JIT replaces by machine code. */
public class Providers {
    static final byte[] TEXT = "the quick brown fox jumps over the lazy dog".repeat(40).getBytes(StandardCharsets.UTF_8);

    static String shown(byte[] bytes) {
        return Base64.getEncoder().encodeToString(Arrays.copyOf(bytes, 24));
    }

    public static void main(String[] args) throws Exception {
        for (Provider provider : Security.getProviders()) {
            System.out.println(provider.getName() + " " + provider.getServices().size());
        }
        for (String name : new String[] {"MD5", "SHA-1", "SHA-256", "SHA-512", "SHA3-256"}) {
            byte[] digest = null;
            // Often enough for the compiler, but for what it has no machine code for.
            int rounds = name.equals("SHA3-256") ? 10 : 150;
            for (int round = 0; round < rounds; round++) {
                digest = MessageDigest.getInstance(name).digest(TEXT);
            }
            System.out.println(name + " " + shown(digest));
        }
        SecretKeySpec key = new SecretKeySpec(Arrays.copyOf(TEXT, 16), "AES");
        Cipher cipher = Cipher.getInstance("AES/GCM/NoPadding");
        System.out.println(cipher.getProvider().getName());
        for (int round = 0; round < 200; round++) {
            cipher.init(Cipher.ENCRYPT_MODE, key, new GCMParameterSpec(128, new byte[] {(byte) round, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
            byte[] sealed = cipher.doFinal(TEXT);
            if (round == 199) {
                System.out.println(shown(sealed));
                cipher.init(Cipher.DECRYPT_MODE, key, new GCMParameterSpec(128, new byte[] {(byte) round, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
                System.out.println(Arrays.equals(cipher.doFinal(sealed), TEXT));
            }
        }
        Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(key);
        System.out.println(shown(mac.doFinal(TEXT)));
        byte[] derived = SecretKeyFactory.getInstance("PBKDF2WithHmacSHA256")
            .generateSecret(new PBEKeySpec("secret".toCharArray(), TEXT, 100, 256)).getEncoded();
        System.out.println(shown(derived));
        KeyPairGenerator generator = KeyPairGenerator.getInstance("RSA");
        generator.initialize(512, new SecureRandom());
        KeyPair pair = generator.generateKeyPair();
        Signature signature = Signature.getInstance("SHA256withRSA");
        signature.initSign(pair.getPrivate());
        signature.update(TEXT);
        byte[] signed = signature.sign();
        signature.initVerify(KeyFactory.getInstance("RSA").generatePublic(new X509EncodedKeySpec(pair.getPublic().getEncoded())));
        signature.update(TEXT);
        System.out.println(signature.verify(signed));
        KeyPairGenerator curve = KeyPairGenerator.getInstance("X25519");
        KeyPair one = curve.generateKeyPair();
        KeyPair other = curve.generateKeyPair();
        System.out.println(Arrays.equals(agree(one, other), agree(other, one)));
        Security.addProvider(new Provider("Ours", "1", "a provider of the program") {});
        System.out.println(Security.getProvider("Ours").getInfo());
        try {
            Cipher.getInstance("None/Such/Thing");
        } catch (java.security.NoSuchAlgorithmException expected) {
            System.out.println(expected.getMessage());
        }
    }

    static byte[] agree(KeyPair own, KeyPair other) throws Exception {
        KeyAgreement agreement = KeyAgreement.getInstance("X25519");
        agreement.init(own.getPrivate());
        agreement.doPhase(other.getPublic(), true);
        return agreement.generateSecret();
    }
}
